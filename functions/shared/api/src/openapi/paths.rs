use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::examples;
use crate::problem::{PROBLEM_JSON, ProblemCode};
use crate::routes::{
    self, Answer, AnswerHeader, Parameter, Part, RATE_LIMIT, RATE_LIMIT_POLICY, RETRY_AFTER, RequestBody, Route,
};

/// The paths of the document.
pub(super) fn paths() -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for (part, route) in routes::parts().iter().flat_map(|part| part.routes.iter().map(move |route| (part, route))) {
        paths.entry(route.path).or_default().insert(route.method.to_ascii_lowercase(), operation(part, route));
    }
    json!(paths)
}

fn operation(part: &Part, route: &Route) -> Value {
    let mut responses: BTreeMap<String, Value> =
        route.answers.iter().map(|answer| (answer.status.to_string(), response(route, answer))).collect();
    let mut problems: BTreeMap<u16, Vec<ProblemCode>> = BTreeMap::new();
    for (status, code) in route.all_problems() {
        problems.entry(status).or_default().push(code);
    }
    responses.extend(problems.into_iter().map(|(status, codes)| (status.to_string(), problem(route, status, &codes))));
    let mut operation = json!({
        "operationId": route.operation.id(),
        "tags": [part.name],
        "summary": route.summary,
        "description": route.description,
        "parameters": parameters(route),
        "responses": responses,
    });
    if let Some(body) = &route.body {
        operation["requestBody"] = request_body(body);
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let in_path = route.path_parameters().map(|name| {
        let (schema, description) = match name {
            "fileGuid" => ("FileGuid", "The upload's name."),
            "jobGuid" => ("JobGuid", "The job's name."),
            "taskId" => ("", "The task's name, as its lease says."),
            _ => ("", "The product, as the `path` in an output names it."),
        };
        let schema = if schema.is_empty() { json!({ "type": "string" }) } else { reference(schema) };
        json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
    });
    let others = route.parameters.iter().map(|parameter| {
        let Parameter { name, place, required, description, schema } = parameter;
        let mut parameter = json!({
            "name": name, "in": place, "required": required, "description": description, "schema": parsed(schema),
        });
        if *place == "query" && !required {
            // The functions read an empty parameter as one that is left out.
            parameter["allowEmptyValue"] = true.into();
        }
        parameter
    });
    in_path.chain(others).collect()
}

fn request_body(body: &RequestBody) -> Value {
    let json = json!({ "schema": reference(&body.json.name()), "example": body.json.example() });
    let mut content = BTreeMap::from([("application/json", json)]);
    if body.or_file {
        // Any other media type will do. Generators know this one.
        content.insert("application/octet-stream", json!({ "schema": { "type": "string", "format": "binary" } }));
    }
    json!({ "required": body.required, "content": content })
}

fn response(route: &Route, answer: &Answer) -> Value {
    let mut response = json!({ "description": answer.description });
    let all = [answer.headers, limits_of(route)].concat();
    if !all.is_empty() {
        response["headers"] = headers(&all);
    }
    let schema = match answer.json {
        [] => return response,
        [one] => reference(&one.name()),
        several => json!({ "anyOf": several.iter().map(|json| reference(&json.name())).collect::<Vec<_>>() }),
    };
    let examples: Map<String, Value> =
        answer.json.iter().map(|json| (json.name().into_owned(), json!({ "value": json.example() }))).collect();
    response["content"] = json!({ "application/json": { "schema": schema, "examples": examples } });
    response
}

/// The header fields that every counted request is answered with.
fn limits_of(route: &Route) -> &'static [AnswerHeader] {
    if route.is_limited() { &[RATE_LIMIT_POLICY, RATE_LIMIT] } else { &[] }
}

fn problem(route: &Route, status: u16, codes: &[ProblemCode]) -> Value {
    let words: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
    let lines: Vec<String> = codes.iter().map(|code| format!("- `{}`: {}", code.as_str(), code.meaning())).collect();
    let examples: BTreeMap<&str, Value> =
        (codes.iter()).map(|code| (code.as_str(), json!({ "value": examples::problem(*code, status) }))).collect();
    // Beside the reference, and not in an `allOf`: so generators use one type for all problems.
    let mut schema = reference("ProblemView");
    schema["properties"] = json!({ "status": { "const": status }, "code": { "enum": words } });
    let mut problem = json!({
        "description": format!("{}.\n\n{}", codes[0].title(status), lines.join("\n")),
        "content": { PROBLEM_JSON: { "schema": schema, "examples": examples } },
    });
    match status {
        429 => problem["headers"] = headers(&[&[RETRY_AFTER], limits_of(route)].concat()),
        503 => problem["headers"] = headers(&[RETRY_AFTER]),
        _ => {}
    }
    problem
}

fn headers(headers: &[AnswerHeader]) -> Value {
    let header = |header: &AnswerHeader| {
        let AnswerHeader { required, description, schema, .. } = header;
        json!({ "required": required, "description": description, "schema": parsed(schema) })
    };
    headers.iter().map(|one| (one.name.to_owned(), header(one))).collect::<Map<_, _>>().into()
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn parsed(schema: &str) -> Value {
    serde_json::from_str(schema).expect("the table's schemas are JSON")
}
