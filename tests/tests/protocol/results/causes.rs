//! The causes of failed rows are counted exactly, over crashes and redrives.

use std::collections::BTreeMap;

use acceptance::world::World;
use redrive_job::redrive::RedriveJobError;
use rowmill_api::request::RedriveRequest;
use rowmill_core::model::causes::{Cause, CauseCount, CauseName, RowRange, Selection};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::JobOutcome;
use serde_json::json;

use super::{TIMES, results, same_results_after_crashes};
use crate::chunks_of;

/// A row, and the code, column and rule of its failure.
type Expected = (String, Option<(&'static str, Option<&'static str>, Option<&'static str>)>);

/// Whether a selection has this row.
type IsSelected = fn(u64) -> bool;

/// A row of each kind, in turn.
fn row(number: u64) -> Expected {
    let violation = |column, rule| Some(("schema_violation", Some(column), Some(rule)));
    match number % 11 {
        1 | 8 => (format!("{number},-1,a@b"), violation("age", "minimum")),
        2 => (format!("{number},999,a@b"), violation("age", "maximum")),
        3 => (format!("{number},x,a@b"), violation("age", "type")),
        4 => (format!("{number},7,nobody"), violation("mail", "pattern")),
        5 => (format!("{number},7"), Some(("ragged_row", None, None))),
        6 => (",7,a@b".to_owned(), violation("id", "required")),
        _ => (format!("{number},7,a@b"), None),
    }
}

async fn validate(world: &World, rows: u64) -> JobGuid {
    let lines: Vec<String> = (1..=rows).map(|number| row(number).0).collect();
    let file = world.store_csv(format!("id,age,mail\n{}\n", lines.join("\n"))).await;
    let schema = json!({
        "required": ["id"],
        "properties": {
            "id": {"type": "integer"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "mail": {"type": "string", "pattern": "@"},
        },
    });
    world.create("validate", file, json!({ "schema": schema })).await.unwrap().job_guid
}

/// The causes of a job, and the rows that stand for them.
async fn causes(world: &World, job: JobGuid) -> BTreeMap<String, (u64, Vec<u64>)> {
    let (manifest, _) = results(world, job).await;
    assert_eq!(manifest.other_causes, 0);
    assert!(manifest.causes.is_sorted_by(|one, next| one.items >= next.items));
    let counted =
        manifest.causes.iter().map(|Cause { name, items, .. }| CauseCount { name: name.clone(), items: *items });
    assert_eq!(world.show(job).await.causes, counted.collect::<Vec<_>>(), "the job names the same");
    let named = manifest.causes.into_iter().map(|cause| {
        let rows = cause.examples.iter().map(|example| example.row).collect();
        (format!("{} {:?} {:?}", cause.name.code, cause.name.column, cause.name.rule), (cause.items, rows))
    });
    named.collect()
}

/// The same, counted from the rows.
fn expected(rows: impl Iterator<Item = u64>) -> BTreeMap<String, (u64, Vec<u64>)> {
    let mut causes: BTreeMap<String, (u64, Vec<u64>)> = BTreeMap::new();
    for number in rows {
        if let Some((code, column, rule)) = row(number).1 {
            let (items, examples) = causes.entry(format!("{code} {column:?} {rule:?}")).or_default();
            *items += 1;
            if examples.len() < 3 {
                examples.push(number);
            }
        }
    }
    causes
}

#[tokio::test]
async fn failed_rows_are_counted_by_code_column_and_rule() {
    let world = World::new(chunks_of(50));
    let job = validate(&world, 5_000).await;
    world.run().await;
    assert_eq!(causes(&world, job).await, expected(1..=5_000));
}

#[tokio::test]
async fn a_crash_at_any_call_counts_no_cause_twice() {
    let crashes = same_results_after_crashes(&TIMES, async |world| validate(world, 30).await).await;
    assert!(crashes > 200, "only {crashes} crashes");
}

#[tokio::test]
async fn a_redrive_leaves_the_causes_that_still_stand() {
    let world = World::new(chunks_of(3));
    let job = validate(&world, 60).await;
    world.run().await;
    let mended: Vec<u64> = (1..=60).filter(|number| number % 11 == 5).collect();
    let corrections: String = mended.iter().map(|row| format!("{row},7,a@b,{row}\n")).collect();
    let corrected = world.store_csv(format!("id,age,mail,row\n{corrections}")).await;
    world.redrive(job, Some(corrected)).await.unwrap();
    world.run().await;
    assert_eq!(causes(&world, job).await, expected((1..=60).filter(|row| !mended.contains(row))));
    assert_eq!(world.show(job).await.outcome, Some(JobOutcome::Partial));
}

fn rows(from: u64, to: Option<u64>) -> Selection {
    Selection { rows: vec![RowRange { from, to }], ..Selection::default() }
}

/// Corrections of all rows, of which the selection takes some.
#[tokio::test]
async fn a_redrive_of_a_selection_leaves_the_other_rows_untouched() {
    let cause = |code: &str, column: Option<&str>, rule: Option<&str>| {
        let (column, rule) = (column.map(str::to_owned), rule.map(str::to_owned));
        Selection { causes: vec![CauseName { code: code.to_owned(), column, rule }], ..Selection::default() }
    };
    let selected: [(Selection, IsSelected); 6] = [
        (cause("ragged_row", None, None), |row| row % 11 == 5),
        (cause("schema_violation", Some("age"), Some("minimum")), |row| [1, 8].contains(&(row % 11))),
        (Selection { codes: vec!["schema_violation".to_owned()], ..Selection::default() }, |row| row % 11 != 5),
        (Selection { columns: vec!["age".into(), "id".into()], ..Selection::default() }, |row| {
            ![4, 5].contains(&(row % 11))
        }),
        (rows(12, Some(40)), |row| (12..=40).contains(&row)),
        (Selection { codes: vec!["ragged_row".into()], ..rows(27, None) }, |row| row == 27),
    ];
    for (selection, is_selected) in selected {
        let world = World::new(chunks_of(3));
        let job = validate(&world, 60).await;
        world.run().await;
        let before = world.all_failed(job).await;
        let corrections: String = before.iter().map(|item| format!("{0},7,a@b,{0}\n", item.row)).collect();
        let corrected = world.store_csv(format!("id,age,mail,row\n{corrections}")).await;
        let request =
            RedriveRequest { file_guid: Some(corrected), select: Some(selection.clone()), ..Default::default() };
        world.redrive_as(job, request).await.unwrap();
        world.run().await;
        let (taken, left): (Vec<_>, Vec<_>) = before.into_iter().partition(|item| is_selected(item.row));
        assert!(!taken.is_empty() && !left.is_empty(), "{selection:?}");
        assert_eq!(world.all_failed(job).await, left, "{selection:?}");
        let rows = left.iter().map(|item| item.row);
        assert_eq!(causes(&world, job).await, expected(rows), "{selection:?}");
        assert_eq!(world.audit(job).await.finding, None);
    }
}

#[tokio::test]
async fn a_selection_that_is_empty_too_long_or_of_no_row_is_refused() {
    let world = World::new(chunks_of(3));
    let job = validate(&world, 60).await;
    world.run().await;
    let columns = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    for (selection, problem) in [
        (Selection::default(), "is empty"),
        (Selection { columns: columns(&["name"]), ..Selection::default() }, "selects no failed row"),
        (rows(0, None), "no range of the rows"),
        (rows(9, Some(8)), "no range of the rows"),
        (rows(61, None), "no range of the rows"),
        (Selection { columns: columns(&[&"x".repeat(5000)]), ..Selection::default() }, "more than the maximum of 4096"),
    ] {
        let request = RedriveRequest { select: Some(selection), ..RedriveRequest::default() };
        let refused = world.redrive_as(job, request).await.unwrap_err();
        assert!(matches!(&refused, RedriveJobError::Selection(why) if why.contains(problem)), "{refused}");
    }
}
