package main

// dashboard is one of Grafana's, without what all have in common.
type dashboard struct {
	name, title, description string
	variables                []variable
	rows                     []row
}

// variable is a choice at the top: the values of a label.
type variable struct{ name, label, query string }

type row struct {
	title  string
	panels []panel
}

// panel shows queries. Its width is of Grafana's 24 columns.
type panel struct {
	kind, title, unit, help string
	width                   int
	queries                 []query
}

type query struct{ expr, legend string }

func graph(title, unit, help string, queries ...query) panel {
	return panel{"timeseries", title, unit, help, 12, queries}
}

func stat(title, unit, help string, queries ...query) panel {
	return panel{"stat", title, unit, help, 6, queries}
}

type object = map[string]any

var source = object{"type": "prometheus", "uid": "${datasource}"}

const (
	graphHeight = 8
	statHeight  = 4
	columns     = 24
)

// grafana is the dashboard in Grafana's form (schema version 39: Grafana 11).
func (d dashboard) grafana() object {
	list := []object{{
		"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0, "refresh": 1, "regex": "",
		"options": []object{}, "current": object{}, "includeAll": false, "multi": false,
	}}
	for _, v := range d.variables {
		list = append(list, object{
			"name": v.name, "label": v.label, "type": "query", "datasource": source, "definition": v.query,
			"query": object{"query": v.query, "refId": "Variable"}, "refresh": 2, "sort": 1, "hide": 0,
			"includeAll": true, "allValue": ".*", "multi": true, "current": object{"text": "All", "value": "$__all"}, "options": []object{}, "regex": "",
		})
	}
	return object{
		"uid": "howdah-" + d.name, "title": d.title, "description": d.description, "tags": []string{"howdah"}, "schemaVersion": 39, "version": 1,
		"editable": true, "graphTooltip": 1, "refresh": "30s", "timezone": "browser", "time": object{"from": "now-3h", "to": "now"},
		"annotations": object{"list": []object{}}, "templating": object{"list": list}, "panels": d.panels(),
		"links": []object{{"type": "dashboards", "tags": []string{"howdah"}, "title": "Howdah", "asDropdown": true, "includeVars": true, "keepTime": true}},
	}
}

// panels lays them out from left to right and top to bottom.
func (d dashboard) panels() []object {
	var list []object
	id, x, y, height := 0, 0, 0, 0
	for _, row := range d.rows {
		y, x, height = y+height, 0, 0
		id++
		list = append(list, object{"id": id, "type": "row", "title": row.title, "collapsed": false, "panels": []object{}, "gridPos": object{"x": 0, "y": y, "w": columns, "h": 1}})
		y++
		for _, p := range row.panels {
			if x+p.width > columns {
				x, y, height = 0, y+height, 0
			}
			h := graphHeight
			if p.kind == "stat" {
				h = statHeight
			}
			id++
			list = append(list, p.grafana(id, object{"x": x, "y": y, "w": p.width, "h": h}))
			x, height = x+p.width, max(height, h)
		}
	}
	return list
}

func (p panel) grafana(id int, position object) object {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend, "instant": p.kind == "stat", "range": p.kind != "stat",
		})
	}
	options := object{"legend": object{"displayMode": "table", "placement": "bottom", "calcs": []string{"lastNotNull", "max"}}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	if p.kind == "stat" {
		options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "graphMode": "none", "textMode": "auto"}
	}
	return object{
		"id": id, "type": p.kind, "title": p.title, "description": p.help, "datasource": source, "gridPos": position, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}}, "options": options,
	}
}
