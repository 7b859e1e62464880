//! `rowmill datasets`: lists datasets, or the records of one.

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_api::dataset::{DatasetView, RecordView};

use super::connection::ApiArgs;
use super::{CommandError, first_of, print_list};
use crate::api::ApiClient;
use crate::terminal::{age, escape_controls, table};

/// Most entries per request: the limit of the API.
const PAGE: usize = 1000;

/// Lists the datasets that `import` has written to, or the records of one
///
/// A record is a line of JSON, with the job and the row that wrote it. Records come in no order. `rowmill export`
/// writes all of them to a file.
#[derive(Debug, clap::Args)]
pub struct DatasetsArgs {
    /// The dataset whose records are listed
    pub dataset: Option<String>,
    /// Only records whose keys begin with this text
    #[arg(long, value_name = "TEXT", requires = "dataset", conflicts_with = "key")]
    pub prefix: Option<String>,
    /// Only the record with this key. Exit code 1 if there is none
    #[arg(long, value_name = "KEY", requires = "dataset")]
    pub key: Option<String>,
    /// List at most this many
    #[arg(long, value_name = "N", default_value = "20")]
    pub limit: NonZeroUsize,
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print each dataset as a line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: DatasetsArgs) -> Result<ExitCode, CommandError> {
    let api = args.api.connect().await?.api;
    let Some(dataset) = &args.dataset else {
        let datasets = datasets(&api, args.limit.get()).await?;
        let table = || dataset_table(&datasets, Timestamp::now());
        print_list(args.json, &datasets, "No dataset has been written to.", table)?;
        return Ok(ExitCode::SUCCESS);
    };
    let narrowed = [("prefix", &args.prefix), ("key", &args.key)];
    let narrowed: Vec<(&str, &str)> =
        narrowed.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect();
    let records = records(&api, dataset, &narrowed, args.limit.get()).await?;
    print_list(true, &records, "", String::new)?;
    if records.is_empty() {
        eprintln!("No record found.");
    }
    Ok(if records.is_empty() && args.key.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn datasets(api: &ApiClient, limit: usize) -> Result<Vec<DatasetView>, CommandError> {
    let page = async |limit, after: Option<String>| {
        let page = api.datasets(limit, after.as_deref()).await?;
        Ok((page.datasets, page.next))
    };
    first_of(limit, PAGE, page).await
}

async fn records(
    api: &ApiClient,
    dataset: &str,
    narrowed: &[(&str, &str)],
    limit: usize,
) -> Result<Vec<RecordView>, CommandError> {
    let page = async |limit: usize, after: Option<String>| {
        let limit = limit.to_string();
        let after = after.as_deref().map(|after| ("after", after));
        let query: Vec<_> = narrowed.iter().copied().chain([("limit", limit.as_str())]).chain(after).collect();
        let page = api.records(dataset, &query).await?;
        Ok((page.records, page.next))
    };
    first_of(limit, PAGE, page).await
}

fn dataset_table(datasets: &[DatasetView], now: Timestamp) -> String {
    let mut rows = vec![["dataset", "last import", "records kept", "by job"].map(str::to_owned).to_vec()];
    rows.extend(datasets.iter().map(|DatasetView { name, last_import, expires_in_seconds, .. }| {
        let since = Duration::try_from(now.duration_since(last_import.created_at)).unwrap_or_default();
        let kept = expires_in_seconds.map_or("for ever".to_owned(), |seconds| age(Duration::from_secs(seconds.into())));
        vec![escape_controls(name), age(since), kept, last_import.job_guid.to_string()]
    }));
    table(&rows, &[])
}

#[cfg(test)]
mod tests {
    use rowmill_api::openapi::examples;
    use serde_json::json;

    use super::*;
    use crate::fake_api::{FakeApi, Reply};

    #[test]
    fn a_dataset_is_shown_with_its_last_import() {
        let datasets = examples::datasets().datasets;
        let now = datasets[0].last_import.created_at + jiff::SignedDuration::from_secs(7260);
        let expected = "dataset    last import  records kept  by job\n\
                        customers  2 h          30 d          01a1f997-c087-7785-ba44-fdac1155c2bf\n";
        assert_eq!(dataset_table(&datasets, now), expected);
    }

    #[tokio::test]
    async fn records_are_listed_past_pages_that_have_none() {
        let [record] = examples::records().records.try_into().unwrap();
        let api = FakeApi::serve(move |_, n| match n {
            0 => Reply::json(200, json!({ "records": [], "next": "16" })),
            1 => Reply::json(200, json!({ "records": [record], "next": "17.a/b" })),
            _ => Reply::json(200, json!({ "records": [record], "next": null })),
        })
        .await;
        let client = ApiClient::new(&api.url, None).unwrap();
        let found = records(&client, "customers", &[("prefix", "c-ä")], 3).await.unwrap();
        assert_eq!(found.len(), 2);
        let asked: Vec<String> = api.seen().into_iter().map(|request| request.target).collect();
        let path = "/api/datasets/customers/records?prefix=c-%C3%A4";
        let expected = ["&limit=3", "&limit=3&after=16", "&limit=2&after=17.a%2Fb"].map(|rest| format!("{path}{rest}"));
        assert_eq!(asked, expected);
    }
}
