use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::ids::JobGuid;
use super::records::{Dataset, DatasetRecord, Expired, RecordVersion, Writer};
use super::stored_record::{Before, Deleting, EARLIER_MAX, History, Pruning, Revision, StoredRecord, Undoing};

fn guid(job: u8) -> JobGuid {
    JobGuid(Uuid::from_u128(u128::from(job)))
}

fn row(job: u8, row: u64) -> DatasetRecord {
    let by = Writer { job_created_ms: i64::from(job / 2), job_guid: guid(job) };
    let fields = json!({ "job": job, "row": row }).as_object().cloned().unwrap();
    DatasetRecord { key: "k".to_owned(), version: RecordVersion { by, row }, fields }
}

/// What has expired in a dataset that keeps records for 60 s, when those that were created this many milliseconds after the
/// epoch have just done so.
fn expired_at(created_ms: i64) -> Expired {
    let dataset = Dataset { expires_in: Some(60), ..Dataset::lasting("d", 1) };
    dataset.expired(Timestamp::from_millisecond(60_000 + created_ms).unwrap())
}

/// What jobs do to one key: 2, 4, 6 and 8 are imports, the later one wins; the number behind that of an import is its
/// prune. Undos get the numbers from 101.
#[derive(Clone, Copy, Debug)]
enum Step {
    Row(u8, u64),
    /// The prune after this import, which has ended.
    Prune(u8),
    /// An undo of this import or prune.
    Undo(u8),
    /// An undo of this undo, if there are so many.
    UndoUndo(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..5_u8, 1..4_u64).prop_map(|(job, row)| Step::Row(job * 2, row)),
        1 => (1..5_u8).prop_map(|job| Step::Prune(job * 2)),
        1 => (2..10_u8).prop_map(Step::Undo),
        1 => (0..3_usize).prop_map(Step::UndoUndo),
    ];
    prop::collection::vec(step, 1..16)
}

/// What is there, said without versions: the last row of each import that is not undone. A prune has row 0, and stands
/// for no record.
#[derive(Default)]
struct Expected {
    rows: BTreeMap<u8, u64>,
    /// Imports and prunes that are hidden.
    hidden: BTreeSet<u8>,
    /// The last undo of the record, if no import has written it since.
    undo: Option<(u8, u8)>,
}

impl Expected {
    fn latest(&self) -> Option<u8> {
        self.rows.keys().next_back().copied()
    }

    fn visible(&self) -> Option<(u8, u64)> {
        let shown = self.rows.iter().rfind(|(job, _)| !self.hidden.contains(job)).map(|(job, row)| (*job, *row));
        shown.filter(|(_, row)| *row > 0)
    }

    /// True if this import has not got it.
    fn is_missing_in(&self, import: u8) -> bool {
        self.visible().is_some() && (self.latest() < Some(import) || self.latest() == Some(import + 1))
    }

    /// True if the undo of this job has reversed it.
    fn undo(&mut self, undone: u8, by: u8) -> bool {
        match (self.latest(), self.undo) {
            (Some(latest), Some((last, of))) if last == undone && of == latest => {
                if !self.hidden.remove(&latest) {
                    self.hidden.insert(latest);
                }
            }
            (Some(latest), None) if latest == undone => drop(self.hidden.insert(latest)),
            _ => return false,
        }
        self.undo = self.latest().map(|latest| (by, latest));
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn readers_see_the_last_row_of_the_last_job_that_is_not_undone(steps in steps()) {
        let (mut stored, mut expected): (Option<StoredRecord>, _) = (None, Expected::default());
        let (mut ended, mut pruned, mut written, mut undos) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), Vec::new());
        for step in steps {
            match step {
                Step::Row(job, number) => {
                    // A job that is undone, or pruned after, writes nothing new. A row of it may be written again.
                    if (ended.contains(&job) || pruned.contains(&job)) && !written.contains(&(job, number)) {
                        continue;
                    }
                    written.insert((job, number));
                    let row = row(job, number);
                    stored = match stored {
                        None => Some(StoredRecord::first(row)),
                        Some(stored) => Some(stored.with(&row).unwrap_or(stored)),
                    };
                    let latest = expected.latest();
                    let last = expected.rows.entry(job).or_default();
                    *last = (*last).max(number);
                    if expected.latest() != latest {
                        expected.undo = None;
                    }
                }
                Step::Prune(import) => {
                    pruned.insert(import);
                    let Some(found) = &stored else { continue };
                    let (import_by, prune) = (row(import, 1).version.by, import + 1);
                    let is_missing = expected.is_missing_in(import);
                    prop_assert_eq!(found.is_missing_in(import_by), is_missing);
                    match found.prune(import_by, guid(prune)) {
                        Pruning::Remove(next) => {
                            prop_assert!(is_missing);
                            prop_assert_eq!(next.prune(import_by, guid(prune)), Pruning::Removed);
                            stored = Some(*next);
                            expected.rows.insert(prune, 0);
                            expected.undo = None;
                        }
                        Pruning::Removed => prop_assert!(expected.rows.contains_key(&prune)),
                        Pruning::NotMissing => prop_assert!(!is_missing),
                    }
                }
                Step::Undo(_) | Step::UndoUndo(_) => {
                    let undone = match step {
                        Step::UndoUndo(number) => undos.get(number).copied(),
                        Step::Undo(job) => Some(job),
                        Step::Row(..) | Step::Prune(_) => None,
                    };
                    let Some(undone) = undone.filter(|undone| ended.insert(*undone)) else { continue };
                    let by = 101 + undos.len() as u8;
                    undos.push(by);
                    let Some(found) = &stored else { continue };
                    let shown = expected.visible().map(|(job, _)| job);
                    let reverses = expected.undo(undone, by);
                    match found.undo(guid(undone), guid(by)) {
                        Undoing::Reverse(next) => {
                            prop_assert!(reverses);
                            prop_assert_eq!(next.undo(guid(undone), guid(by)), Undoing::Reversed, "it is not undone twice");
                            prop_assert!(next.is_of(guid(undone)) && next.at() != found.at());
                            stored = Some(*next);
                        }
                        Undoing::Kept(_) => prop_assert!(!reverses),
                        // Its rows came when later ones were on top of each other.
                        Undoing::NotOurs => prop_assert!(!reverses && shown != Some(undone)),
                        Undoing::Reversed => prop_assert!(false, "an undo that was not there before"),
                    }
                }
            }
            let visible = stored.clone().and_then(StoredRecord::visible).map(|record| record.version);
            let expected = expected.visible().map(|(job, number)| row(job, number).version);
            prop_assert_eq!(visible, expected);
            let history = stored.as_ref().and_then(|stored| stored.history.clone());
            let text = serde_json::to_string(&history).unwrap();
            prop_assert_eq!(serde_json::from_str::<Option<History>>(&text).unwrap(), history);
        }
    }

    #[test]
    fn the_text_of_revisions_sorts_like_their_values(
        a in (1..4_u64, 0..3_u32), b in (1..4_u64, 0..3_u32),
    ) {
        let revision = |(number, revision)| Revision { version: row(1, number).version, number: revision };
        let (a, b) = (revision(a), revision(b));
        prop_assert_eq!((a.version, a.number).cmp(&(b.version, b.number)), a.to_string().cmp(&b.to_string()));
        prop_assert_eq!(a.to_string().parse(), Ok(a));
    }
}

#[test]
fn a_record_names_the_last_jobs_that_wrote_it() {
    let mut record = StoredRecord::first(row(1, 1));
    for job in 2..=20 {
        record = record.with(&row(job, 1)).unwrap();
    }
    let named: Vec<u8> = (1..=20).filter(|job| record.is_of(guid(*job))).collect();
    assert_eq!(named, (12..=20).collect::<Vec<_>>());
    assert_eq!(named.len(), EARLIER_MAX + 1);
    assert_eq!(record.undo(guid(15), guid(101)), Undoing::Kept(guid(20)));
    assert_eq!(record.undo(guid(2), guid(101)), Undoing::NotOurs);
}

#[test]
fn an_undo_goes_on_where_one_before_it_was_stopped() {
    let reversed = |found| match found {
        Undoing::Reverse(record) => *record,
        other => panic!("{other:?}"),
    };
    let record = StoredRecord::first(row(1, 1)).with(&row(2, 1)).unwrap();
    let first = reversed(record.undo(guid(2), guid(101)));
    // The next one takes over: its undo brings back all.
    let second = reversed(first.undo(guid(2), guid(102)));
    assert_eq!(second.clone().visible(), Some(row(1, 1)));
    assert_eq!(second.undo(guid(2), guid(101)), Undoing::Reversed, "a late run of the first one");
    assert_eq!(second.undo(guid(101), guid(103)), Undoing::Kept(guid(102)));
    assert_eq!(reversed(second.undo(guid(102), guid(103))).visible(), Some(row(2, 1)));
    // The repeated run of an undo, after a later job.
    let later = first.with(&row(3, 1)).unwrap();
    assert_eq!(later.undo(guid(2), guid(101)), Undoing::Reversed);
    assert_eq!(later.undo(guid(2), guid(102)), Undoing::Kept(guid(3)));
    // Once the first one is undone, the next one leaves it.
    let shown = reversed(first.undo(guid(101), guid(103)));
    assert_eq!(shown.clone().visible(), Some(row(2, 1)));
    assert_eq!(shown.undo(guid(2), guid(102)), Undoing::Kept(guid(103)));
    assert_eq!(shown.undo(guid(101), guid(103)), Undoing::Reversed);
    assert_eq!(reversed(shown.undo(guid(101), guid(104))).visible(), Some(row(2, 1)), "nor does it hide again");
    // What has nothing to show in its place is not hidden.
    let mut late = shown.with(&row(1, 2)).unwrap();
    if let Some(history) = &mut late.history {
        history.before = Before::TooLarge;
    }
    assert_eq!(late.undo(guid(103), guid(105)), Undoing::Kept(guid(2)));
}

#[test]
fn what_keeps_too_little_is_kept() {
    let bare = StoredRecord { history: None, ..StoredRecord::first(row(1, 1)) };
    assert_eq!(bare.undo(guid(1), guid(101)), Undoing::Kept(guid(1)));
    assert_eq!(bare.undo(guid(2), guid(101)), Undoing::NotOurs);
    let mut large = bare.with(&row(2, 1)).unwrap();
    if let Some(history) = &mut large.history {
        history.before = Before::TooLarge;
    }
    assert_eq!(large.undo(guid(2), guid(101)), Undoing::Kept(guid(2)));
    assert_eq!(large.with(&row(1, 2)), None, "what was there is not known");
    assert_eq!(bare.with(&row(0, 1)), None, "an earlier job, of which nothing is kept");
    // A job that keeps no history has written it since.
    let traced = StoredRecord { latest: row(4, 1), ..bare.with(&row(3, 1)).unwrap() };
    assert_eq!(traced.clone().visible(), Some(row(4, 1)));
    assert_eq!(traced.undo(guid(3), guid(101)), Undoing::Kept(guid(4)));
    assert_eq!(traced.with(&row(2, 1)), None);
}

#[test]
fn a_deletion_leaves_nothing_of_before_it_whatever_was_written_when() {
    let deletion = row(2, 1).version.by;
    for (before, after, undone) in [(1, 1, false), (1, 3, false), (1, 3, true), (3, 3, false), (1, 1, true)] {
        let mut record = StoredRecord::first(row(before, 1));
        record = record.with(&row(after, 2)).unwrap_or(record);
        if undone {
            let Undoing::Reverse(hidden) = record.undo(guid(after), guid(9)) else { panic!("kept") };
            record = *hidden;
        }
        let left = match record.delete(deletion) {
            Deleting::Remove => {
                assert!(after < 2, "{before} {after}: what a later job wrote stays");
                continue;
            }
            Deleting::Forget(left) => *left,
            Deleting::Later => record.clone(),
        };
        assert!(after > 2 && left.latest == record.latest);
        let kept = left.history.as_ref().and_then(|history| match &history.before {
            Before::Record { version, .. } => Some(version.by),
            Before::Nothing | Before::Removed { .. } | Before::TooLarge => None,
        });
        assert!(kept.is_none_or(|by| by > deletion), "{before} {after} {undone}: {left:?}");
        assert_eq!(left.clone().visible().is_none(), undone, "the undo still hides what the later job wrote");
        assert_eq!(left.delete(deletion), Deleting::Later, "once is enough");
    }
}

#[test]
fn a_deletion_removes_what_has_expired_whoever_wrote_it() {
    let (record, deletion) = (StoredRecord::first(row(4, 1)), row(2, 1).version.by);
    assert_eq!(record.delete(deletion), Deleting::Later);
    assert_eq!(StoredRecord { expired: expired_at(2), ..record }.delete(deletion), Deleting::Remove);
}

/// A run of the import that everybody has given up may write after a deletion of the dataset and a prune.
#[test]
fn no_prune_removes_what_its_import_wrote_late() {
    let import = row(4, 1);
    let Pruning::Remove(pruned) = StoredRecord::first(row(2, 1)).prune(import.version.by, guid(5)) else {
        panic!("not missing")
    };
    let late = pruned.with(&import).unwrap();
    for (record, is_missing) in [(*pruned, true), (late, false)] {
        let Undoing::Reverse(shown) = record.undo(guid(5), guid(101)) else { panic!("kept") };
        assert!(shown.clone().visible().is_some());
        assert_eq!(shown.is_missing_in(import.version.by), is_missing);
    }
}

/// The record after this step, with what has expired by then. Undos are told apart by `by`.
fn after(stored: Option<&StoredRecord>, step: Step, by: u8, expired: Expired) -> Option<StoredRecord> {
    let read = stored.map(|stored| StoredRecord { expired, ..stored.clone() });
    let next = match step {
        Step::Row(job, number) => match &read {
            None => Some(StoredRecord::first(row(job, number))),
            Some(found) => found.with(&row(job, number)),
        },
        Step::Prune(import) => {
            read.as_ref().and_then(|found| match found.prune(row(import, 1).version.by, guid(import + 1)) {
                Pruning::Remove(next) => Some(*next),
                Pruning::Removed | Pruning::NotMissing => None,
            })
        }
        Step::Undo(undone) => read.as_ref().and_then(|found| match found.undo(guid(undone), guid(by)) {
            Undoing::Reverse(next) => Some(*next),
            Undoing::Reversed | Undoing::Kept(_) | Undoing::NotOurs => None,
        }),
        Step::UndoUndo(number) => return after(stored, Step::Undo(101 + number as u8), by, expired),
    };
    next.or(read)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// The table may remove an expired record at any time, or never.
    #[test]
    fn readers_see_no_expired_record_and_not_whether_it_was_removed(
        steps in prop::collection::vec((steps(), any::<bool>()), 1..6)
    ) {
        let (mut kept, mut removed, mut eternal, mut by) = (None, None, None, 101);
        let has_prunes = steps.iter().flat_map(|(steps, _)| steps).any(|step| matches!(step, Step::Prune(_)));
        for (now, (steps, is_removed)) in (0_i64..).zip(steps) {
            let expired = expired_at(now);
            let visible = |stored: &Option<StoredRecord>| {
                stored.clone().and_then(|stored| StoredRecord { expired, ..stored }.visible())
            };
            if is_removed {
                removed = removed.filter(|stored: &StoredRecord| !expired.is(stored.latest.version.by));
            }
            for step in steps {
                kept = after(kept.as_ref(), step, by, expired);
                removed = after(removed.as_ref(), step, by, expired);
                eternal = after(eternal.as_ref(), step, by, Expired::default());
                by += u8::from(matches!(step, Step::Undo(_) | Step::UndoUndo(_)));
                prop_assert_eq!(visible(&kept), visible(&removed));
                // What is no record any more is not pruned, so a later row may be one.
                prop_assert!(has_prunes || visible(&kept) == visible(&eternal));
            }
        }
    }
}

#[test]
fn a_new_row_takes_along_nothing_that_has_expired() {
    // Jobs 2 and 3 have been created a millisecond after the epoch, job 4 two.
    let expired = expired_at(1);
    let record = StoredRecord::first(row(2, 1)).with(&row(4, 1)).unwrap();
    let Undoing::Reverse(hidden) = record.undo(guid(4), guid(101)) else { panic!("kept") };
    let hidden = StoredRecord { expired, ..*hidden };
    assert_eq!(hidden.clone().visible(), None);
    let next = hidden.with(&row(6, 1)).unwrap();
    assert_eq!(next.history.as_ref().map(|history| &history.before), Some(&Before::Nothing));
    assert_eq!(hidden.with(&row(3, 1)), None, "a late row that has expired");
    // What an undo has done counts as done, also once the record has expired.
    let gone = StoredRecord { expired: expired_at(2), ..hidden };
    assert_eq!((gone.undo(guid(4), guid(101)), gone.undo(guid(4), guid(102))), (Undoing::Reversed, Undoing::NotOurs));
}
