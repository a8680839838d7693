-- What Argo CD shows of a ShareDirectory. Without a state it is on its way, unless it exists in the namespace only.
local status = obj.status or {}
local state = status.state
if state == nil then
  state = "Creating"
  if obj.spec.renamedFrom ~= nil then
    state = "Renaming"
  elseif obj.spec.dataServerRef == nil then
    state = "Ready"
  end
end
if state == "Ready" then
  return { status = "Healthy", message = obj.spec.path }
end
return { status = "Progressing", message = state .. " " .. obj.spec.path }
