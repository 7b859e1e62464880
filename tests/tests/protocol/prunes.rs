//! A prune removes the records that an import has not got, and nothing else.

use std::collections::BTreeSet;

use acceptance::faults::at_every_call;
use acceptance::world::World;
use create_job::create::CreateJobError;
use rowmill_core::job_types::NotPrunable;
use rowmill_core::model::changes::{Change, Changes};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::ports::Queue;
use serde_json::json;

use crate::undos::{TIME, changes_of, create, import, keys, lagging, records, rows, undone, without};

async fn prune(world: &World, import: JobGuid, is_dry_run: bool) -> Result<JobGuid, CreateJobError> {
    Ok(world.creator.prune(&World::owner(), import, is_dry_run).await?.job.job_guid)
}

/// The keys that a prune has removed, or would remove.
async fn pruned(world: &World, import: JobGuid, is_dry_run: bool) -> (JobGuid, Vec<u64>) {
    let job = prune(world, import, is_dry_run).await.unwrap();
    world.run().await;
    let changes = changes_of(world, job).await;
    let removed = keys(&changes, Change::Remove);
    let counts = world.manifest(&world.job(job).await).await.changes.unwrap_or_default();
    assert_eq!(counts, Changes { remove: removed.len() as u64, ..Changes::default() });
    assert_eq!(removed.len(), changes.len());
    (job, removed)
}

#[tokio::test]
async fn after_a_prune_the_dataset_has_what_the_file_has_and_its_undo_brings_the_rest_back() {
    let world = lagging(3);
    import(&world, rows("base", 1..=60, &[])).await;
    import(&world, rows("old", 50..=70, &[])).await;
    let full = import(&world, rows("full", (1..=80).filter(|key| key % 4 > 0), &[])).await;
    let before = records(&world);
    let missing: Vec<u64> = (1..=70).filter(|key| key % 4 == 0).collect();

    assert_eq!(pruned(&world, full, true).await.1, missing);
    assert_eq!(records(&world), before, "it is only counted");
    let (prune, removed) = pruned(&world, full, false).await;
    assert_eq!(removed, missing);
    let expected = without(&[rows("full", (1..=80).filter(|key| key % 4 > 0), &[])]).await;
    assert_eq!(records(&world), expected);
    assert!(pruned(&world, full, false).await.1.is_empty(), "again");

    let (_, changes) = undone(&world, prune).await;
    assert_eq!(keys(&changes, Change::Reversed), missing);
    assert_eq!(records(&world), before);
    // What the import has replaced is still there for its undo.
    undone(&world, full).await;
    assert_eq!(records(&world), without(&[rows("base", 1..=60, &[]), rows("old", 50..=70, &[])]).await);
}

#[tokio::test]
async fn what_is_later_than_the_import_stays_and_what_comes_late_from_before_it_does_not() {
    let world = lagging(4);
    import(&world, rows("base", 1..=20, &[])).await;
    // Created before the import, and split after the prune.
    let slow = create(&world, rows("slow", 15..=30, &[])).await;
    let full = create(&world, rows("full", 1..=10, &[])).await;
    let (of_slow, of_full): (Vec<_>, Vec<_>) =
        world.splits.take().into_iter().partition(|message| message.job_guid == slow);
    world.splits.send(&of_full).await.unwrap();
    world.run().await;
    import(&world, rows("later", 12..=14, &[])).await;

    let (prune, removed) = pruned(&world, full, false).await;
    assert_eq!(removed, [11, 15, 16, 17, 18, 19, 20]);
    world.splits.send(&of_slow).await.unwrap();
    world.run().await;
    let left: BTreeSet<u64> = records(&world).keys().map(|key| key.parse().unwrap()).collect();
    // The prune knows nothing of keys that were not there.
    assert_eq!(left, [1..=10, 12..=14, 21..=30].into_iter().flatten().collect());
    undone(&world, prune).await;
    assert_eq!((&records(&world)["15"]["by"], &records(&world)["11"]["by"]), (&json!("slow 15"), &json!("base 11")));

    // A later job takes a removed record's place, and its undo shows none.
    let (_, removed) = pruned(&world, full, false).await;
    assert!(removed.contains(&11));
    let again = import(&world, rows("again", 11..=11, &[])).await;
    assert_eq!(records(&world)["11"]["by"], "again 11");
    undone(&world, again).await;
    assert!(!records(&world).contains_key("11"));
}

#[tokio::test]
async fn only_an_import_whose_rows_all_succeeded_is_pruned_after() {
    let world = lagging(5);
    let why = async |import: JobGuid| match prune(&world, import, false).await {
        Err(CreateJobError::NotPrunable(why)) => why,
        other => panic!("{other:?}"),
    };
    import(&world, rows("base", 1..=10, &[])).await;
    let partial = import(&world, rows("partial", 1..=4, &[3])).await;
    assert_eq!(why(partial).await, NotPrunable::NotWhole);
    let empty = import(&world, rows("empty", [], &[])).await;
    assert_eq!(why(empty).await, NotPrunable::Empty);
    let checked = world.validate_csv("a\n1\n").await;
    assert!(matches!(prune(&world, checked, true).await, Err(CreateJobError::JobActive(_))));
    world.run().await;
    assert_eq!(why(checked).await, NotPrunable::NoImport("validate".into()));
    let file = world.store_csv(rows("dry", 1..=2, &[])).await;
    let params = json!({ "dataset": "d", "key": "id", "dryRun": true });
    let dry = world.create("import", file, params).await.unwrap().job_guid;
    world.run().await;
    assert_eq!(why(dry).await, NotPrunable::DryRun);
    world.outlast_runs();
    let full = import(&world, rows("full", 1..=2, &[])).await;
    undone(&world, full).await;
    assert_eq!(why(full).await, NotPrunable::Undone);
    let others = world.creator.prune(&Owner("others".into()), partial, true).await;
    assert!(matches!(others, Err(CreateJobError::NoSuchJob(_))));
    // The corrected row makes it whole.
    let corrected = world.store_csv("id,by,row\n3,corrected,3\n").await;
    world.redrive(partial, Some(corrected)).await.unwrap();
    world.run().await;
    assert_eq!(pruned(&world, partial, true).await.1, (5..=10).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_death_at_any_call_of_a_prune_removes_each_record_and_counts_it_once() {
    let deaths = at_every_call(async |call, death| {
        let world = lagging(2);
        import(&world, rows("base", 1..=9, &[])).await;
        let full = import(&world, rows("full", 1..=3, &[])).await;
        let job = prune(&world, full, false).await.unwrap();
        world.faults.plan(call, death);
        world.run_through_crashes(TIME).await;
        let happened = !world.faults.is_pending();
        assert_eq!(keys(&changes_of(&world, job).await, Change::Remove), (4..=9).collect::<Vec<_>>());
        assert_eq!(records(&world).len(), 3);
        happened
    })
    .await;
    assert!(deaths > 40, "{deaths} deaths");
}
