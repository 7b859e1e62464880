//! From the HTTP request to the use cases and back.

use lambda_http::{Body, Request, Response};
use rowmill_api::routes::Operation;
use rowmill_aws::host::http::{
    Call, Problem, invalid_query, json_response, page_limit, path_parameter, query_parameter,
};
use rowmill_core::model::ids::Owner;
use rowmill_core::ports::PortError;

use crate::limits::{PAGE_DEFAULT, PAGE_MAX};
use crate::records::{Datasets, Wanted};

/// Answers the `GET` requests to `/api/datasets` and below.
pub async fn handle(datasets: &Datasets, call: Call) -> Result<Response<Body>, Problem> {
    let request = &call.request;
    match call.operation {
        Operation::ListDatasets => list(datasets, call.owner()?, request).await,
        Operation::ListRecords => records(datasets, call.owner()?, request).await,
        _ => Err(Problem::no_such_route()),
    }
}

async fn list(datasets: &Datasets, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let limit = page_limit(request, PAGE_DEFAULT, PAGE_MAX)?;
    let after: Option<String> = query_parameter(request, "after", "a name")?;
    match datasets.list(owner, after.as_deref(), limit).await? {
        Some(page) => Ok(json_response(200, &page)),
        None => Err(invalid_query("after", "must be a `next` that this API gave out")),
    }
}

async fn records(datasets: &Datasets, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let name: String = path_parameter(request, "dataset")?;
    let text = |name| query_parameter::<String>(request, name, "a text");
    let wanted = Wanted {
        key: text("key")?,
        prefix: text("prefix")?.unwrap_or_default(),
        at: query_parameter(request, "after", "a `next` that this API gave out")?.unwrap_or_default(),
        limit: page_limit(request, PAGE_DEFAULT, PAGE_MAX)?,
    };
    if wanted.at.after().is_some_and(|after| !after.starts_with(&wanted.prefix)) {
        return Err(invalid_query("after", "must be a `next` that this API gave out for the same `prefix`"));
    }
    match datasets.records(owner, &name, &wanted).await {
        Ok(page) => Ok(json_response(200, &page)),
        Err(PortError::NotFound) => Err(Problem::not_found(format!(
            "There is no dataset `{name}`. Import rows into it first, or correct the name."
        ))),
        Err(error) => Err(error.into()),
    }
}
