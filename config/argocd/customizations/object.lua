-- The health of Howdah's objects in Argo CD, by their conditions: Stalled (the user must act) is Degraded, Reconciling
-- (the user need not act) is Progressing, and Paused is Suspended.
local function health(status, condition, message)
  if condition ~= nil and condition.message ~= nil then
    message = condition.message
    if condition.reason ~= nil and condition.reason ~= condition.type then
      message = condition.reason .. ": " .. message
    end
  end
  return { status = status, message = message }
end

local conditions = {}
local status = obj.status or {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local function is(name)
  return conditions[name] ~= nil and conditions[name].status == "True"
end

if is("Paused") then
  return health("Suspended", conditions.Paused)
end
-- A data server that does not answer can't say so itself: a namespace server does.
if status.unreachable ~= nil and status.unreachable.sinceTime ~= nil then
  return health("Degraded", nil, "does not answer since " .. status.unreachable.sinceTime)
end
-- Of a FileServer or a FileShare Ready; of a benchmark Succeeded; of a ShareExport Serving.
local summary = conditions.Ready or conditions.Succeeded or conditions.Serving
if summary == nil or status.observedGeneration ~= nil and status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", conditions.Reconciling, "this generation was not processed yet")
end
if is("Stalled") then
  return health("Degraded", conditions.Stalled)
end
if summary.status == "True" then
  return health("Healthy", summary)
end
if summary.reason == "Suspended" then
  return health("Suspended", summary)
end
return health("Progressing", summary)
