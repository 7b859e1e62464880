use std::collections::BTreeSet;

use futures::future::join_all;

use super::fixtures::{commit, commit_chunk, guid, run, tally, usage};
use crate::contract::at;
use rowmill_core::model::tally::{Commit, Committed, Counts, Mark, MarkKind, Tally};
use rowmill_core::ports::{CommitAnswer, JobStore, PortError};

fn counts(chunks: u64) -> Counts {
    Counts { succeeded: 3 * chunks, failed: chunks, skipped: chunks }
}

/// Puts a tally of two chunks and commits both.
async fn closed(store: &impl JobStore, number: u32) -> Tally {
    store.put_tally(guid(1), &tally(number, 2)).await.unwrap();
    commit_chunk(store, &commit(number, 0, 1)).await.unwrap();
    commit_chunk(store, &commit(number, 1, 1)).await.unwrap().tally().clone()
}

pub async fn a_tally_reads_back_and_is_put_once(store: &impl JobStore) {
    store.put_tally(guid(1), &tally(0, 2)).await.unwrap();
    assert_eq!(store.tally(guid(1), 1, 0).await.unwrap(), tally(0, 2));
    let committed = commit_chunk(store, &commit(0, 1, 1)).await.unwrap();
    let other = Tally { stored_by: Some(run(2)), ..tally(0, 3) };
    assert_eq!(store.put_tally(guid(1), &other).await.unwrap(), *committed.tally(), "the first one counts as it is");
    assert_eq!(store.tally(guid(1), 1, 0).await.unwrap(), *committed.tally(), "the counts stay");
    let stored = Tally { stored_by: Some(run(2)), ..tally(1, 3) };
    assert_eq!(store.put_tally(guid(1), &stored).await.unwrap(), stored);
    assert_eq!(store.tally(guid(1), 1, 1).await.unwrap(), stored);
    assert!(matches!(store.tally(guid(2), 1, 0).await, Err(PortError::NotFound)), "each job has its own tallies");
}

pub async fn a_range_of_tallies_is_in_order_and_leaves_out_missing_ones(store: &impl JobStore) {
    for number in [11, 2, 0, 10, 9] {
        store.put_tally(guid(1), &tally(number, 1)).await.unwrap();
    }
    let numbers = async |range| -> Vec<u32> {
        let tallies = store.tallies(guid(1), 1, range).await.unwrap();
        tallies.iter().map(|tally| tally.number).collect()
    };
    assert_eq!(numbers(0..100).await, [0, 2, 9, 10, 11]);
    assert_eq!(numbers(2..11).await, [2, 9, 10]);
    assert!(numbers(3..9).await.is_empty());
    assert!(numbers(5..5).await.is_empty());
}

pub async fn a_chunk_is_counted_once_regardless_of_who_commits_it(store: &impl JobStore) {
    store.put_tally(guid(1), &tally(0, 2)).await.unwrap();
    let Committed::Won(won) = commit_chunk(store, &commit(0, 1, 1)).await.unwrap() else { panic!("lost") };
    assert_eq!((won.done, won.counts, won.bytes, won.at), (1, counts(1), 50, at(5)));
    assert_eq!(won.mark(1), Some(Mark { kind: MarkKind::HasFailed, run: run(1) }));
    assert_eq!(won.mark(0), None);
    assert!(!won.is_closed());
    let mut other = commit(0, 1, 2);
    other.counts = Counts::all_skipped(5);
    let Committed::Lost(seen) = commit_chunk(store, &other).await.unwrap() else { panic!("won twice") };
    assert_eq!(seen, won);
    let Committed::Won(closed) = commit_chunk(store, &commit(0, 0, 2)).await.unwrap() else { panic!("lost") };
    assert!(closed.is_closed());
    assert_eq!((closed.done, closed.counts, closed.bytes), (2, counts(2), 100));
    assert_eq!(store.tally(guid(1), 1, 0).await.unwrap(), closed);
}

pub async fn a_run_that_lost_the_reply_has_won(store: &impl JobStore) {
    store.put_tally(guid(1), &tally(0, 2)).await.unwrap();
    let Committed::Won(won) = commit_chunk(store, &commit(0, 0, 1)).await.unwrap() else { panic!("lost") };
    assert_eq!((won.done, won.counts), (1, counts(1)));
    let Committed::WonBefore(again) = commit_chunk(store, &commit(0, 0, 1)).await.unwrap() else { panic!("lost") };
    assert_eq!(again, won);
}

pub async fn chunks_of_one_tally_are_committed_together_or_not_at_all(store: &impl JobStore) {
    store.put_tally(guid(1), &tally(0, 5)).await.unwrap();
    let [first, second, third] = [commit(0, 0, 1), commit(0, 3, 2), commit(0, 4, 3)];
    let together = [first.clone(), second.clone()];
    let CommitAnswer::Applied(both) = store.commit(guid(1), &together).await.unwrap() else { panic!("refused") };
    assert_eq!((both.done, both.counts, both.bytes, both.at), (2, counts(2), 100, at(5)));
    assert_eq!(
        [0, 1, 2, 3, 4].map(|index| both.mark(index).map(|mark| mark.run)),
        [Some(run(1)), None, None, Some(run(2)), None]
    );
    assert_eq!(store.tally(guid(1), 1, 0).await.unwrap(), both);
    for refused in [together.to_vec(), vec![third.clone(), commit(0, 3, 9)], vec![commit(0, 0, 9), third.clone()]] {
        let answer = store.commit(guid(1), &refused).await.unwrap();
        assert_eq!(answer, CommitAnswer::Refused(both.clone()), "none of {refused:?}");
    }
    assert_eq!(first.refused_by(&both), Some(Committed::WonBefore(both.clone())));
    assert_eq!(commit(0, 3, 9).refused_by(&both), Some(Committed::Lost(both.clone())));
    assert_eq!(third.refused_by(&both), None, "it was refused because of the others");
    let closed = store.skip_rest(guid(1), &both, at(9)).await.unwrap();
    let rest = [third.clone(), commit(0, 1, 3)];
    assert_eq!(store.commit(guid(1), &rest).await.unwrap(), CommitAnswer::Refused(closed.clone()));
    assert_eq!(third.refused_by(&closed), Some(Committed::Lost(closed)));
}

pub async fn all_64_chunks_of_a_tally_can_be_committed_together(store: &impl JobStore) {
    store.put_tally(guid(1), &tally(0, 64)).await.unwrap();
    let commits: Vec<Commit> = (0..64).map(|index| commit(0, index, 1)).collect();
    let CommitAnswer::Applied(all) = store.commit(guid(1), &commits).await.unwrap() else { panic!("refused") };
    assert!(all.is_closed());
    assert_eq!((all.counts, all.bytes), (counts(64), 64 * 50));
}

pub async fn commits_that_are_not_of_one_tally_are_invalid(store: &impl JobStore) {
    for number in 0..2 {
        store.put_tally(guid(1), &tally(number, 2)).await.unwrap();
    }
    let far = commit(0, 64, 1);
    for commits in [vec![], vec![commit(0, 0, 1), commit(1, 0, 1)], vec![commit(0, 0, 1), commit(0, 0, 2)], vec![far]] {
        assert!(matches!(store.commit(guid(1), &commits).await, Err(PortError::Invalid { .. })), "{commits:?}");
    }
    assert_eq!(store.tally(guid(1), 1, 0).await.unwrap(), tally(0, 2));
}

pub async fn a_chunk_of_a_missing_tally_is_not_counted(store: &impl JobStore) {
    assert!(matches!(commit_chunk(store, &commit(0, 0, 1)).await, Err(PortError::NotFound)));
    assert!(matches!(store.tally(guid(1), 1, 0).await, Err(PortError::NotFound)), "nor does it make one");
}

pub async fn concurrent_double_commits_of_64_chunks_count_each_chunk_once(store: &impl JobStore) {
    store.put_tally(guid(1), &tally(0, 64)).await.unwrap();
    let commits: Vec<_> = (1..=2).flat_map(|by| (0..64).map(move |index| commit(0, index, by))).collect();
    let results = join_all(commits.iter().map(|commit| commit_chunk(store, commit))).await;
    let won = results.iter().filter(|result| matches!(result, Ok(Committed::Won(_)))).count();
    let lost = results.iter().filter(|result| matches!(result, Ok(Committed::Lost(_)))).count();
    assert_eq!((won, lost), (64, 64));
    let seen = store.tally(guid(1), 1, 0).await.unwrap();
    assert_eq!((seen.done, seen.counts, seen.bytes), (64, counts(64), 64 * 50));
    let closers = results.iter().flatten().filter(|committed| committed.tally().is_closed()).count();
    assert!(closers > 0, "somebody sees that the tally is closed");
}

pub async fn a_tally_is_folded_once(store: &impl JobStore) {
    let (first, second) = (closed(store, 0).await, closed(store, 1).await);
    for _ in 0..2 {
        let totals = store.fold(guid(1), &first).await.unwrap();
        assert_eq!(totals.closed, BTreeSet::from([0]));
        assert_eq!((totals.items, totals.counts, totals.bytes, totals.final_tallies), (10, counts(2), 100, None));
    }
    let totals = store.fold(guid(1), &second).await.unwrap();
    assert_eq!(totals.closed, BTreeSet::from([0, 1]));
    assert_eq!((totals.items, totals.counts, totals.bytes), (20, counts(4), 200));
    assert_eq!(store.totals(guid(1), 1).await.unwrap(), totals);
}

pub async fn the_usage_of_closed_tallies_adds_up(store: &impl JobStore) {
    for number in [0, 1] {
        let put = Tally { usage: usage(number.into()), ..tally(number, 1) };
        store.put_tally(guid(1), &put).await.unwrap();
        let closed = commit_chunk(store, &commit(number, 0, 1)).await.unwrap().tally().clone();
        assert_eq!(closed.usage, put.usage);
        for _ in 0..2 {
            store.fold(guid(1), &closed).await.unwrap();
        }
    }
    assert_eq!(store.totals(guid(1), 1).await.unwrap().usage, usage(0) + usage(1));
}

pub async fn tallies_that_are_folded_concurrently_are_all_counted(store: &impl JobStore) {
    let mut tallies = Vec::new();
    for number in 0..12 {
        tallies.push(closed(store, number).await);
    }
    store.set_final_tallies(guid(1), 1, 12).await.unwrap();
    let twice = tallies.iter().chain(&tallies);
    let totals = join_all(twice.map(|tally| store.fold(guid(1), tally))).await;
    assert!(totals.iter().flatten().any(|totals| totals.is_complete()), "somebody sees that it is complete");
    let totals = store.totals(guid(1), 1).await.unwrap();
    assert_eq!((totals.closed.len(), totals.items, totals.counts, totals.bytes), (12, 120, counts(24), 1200));
}

pub async fn the_number_of_tallies_can_be_set_again(store: &impl JobStore) {
    let first = closed(store, 0).await;
    store.fold(guid(1), &first).await.unwrap();
    for _ in 0..2 {
        let totals = store.set_final_tallies(guid(1), 1, 1).await.unwrap();
        assert_eq!((totals.final_tallies, totals.closed.len()), (Some(1), 1));
        assert!(totals.is_complete());
    }
    assert!(
        store.set_final_tallies(guid(2), 1, 0).await.unwrap().is_complete(),
        "a file of no items is complete at once"
    );
}

pub async fn attempts_are_counted_separately(store: &impl JobStore) {
    let first = closed(store, 0).await;
    store.fold(guid(1), &first).await.unwrap();
    let second = Tally { attempt: 2, ..tally(0, 1) };
    store.put_tally(guid(1), &second).await.unwrap();
    assert_eq!(store.tally(guid(1), 2, 0).await.unwrap(), second);
    assert_eq!(store.totals(guid(1), 2).await.unwrap().closed.len(), 0);
    assert_eq!(store.tallies(guid(1), 1, 0..9).await.unwrap(), [first]);
}

pub async fn what_waits_for_a_tally_is_noted_as_sent(store: &impl JobStore) {
    store.note_next_sent(guid(1), 1, 0).await.unwrap();
    assert!(matches!(store.tally(guid(1), 1, 0).await, Err(PortError::NotFound)), "a missing tally is not made");
    store.put_tally(guid(1), &tally(0, 2)).await.unwrap();
    let before = commit_chunk(store, &commit(0, 1, 1)).await.unwrap().tally().clone();
    assert!(!before.next_sent);
    store.note_next_sent(guid(1), 1, 0).await.unwrap();
    assert_eq!(store.tally(guid(1), 1, 0).await.unwrap(), Tally { next_sent: true, ..before });
    let closed = commit_chunk(store, &commit(0, 0, 2)).await.unwrap();
    assert!(closed.tally().next_sent && closed.tally().is_closed());
}

pub async fn a_tally_closed_without_its_rest_accepts_no_further_chunks(store: &impl JobStore) {
    store.put_tally(guid(1), &tally(0, 3)).await.unwrap();
    let seen = commit_chunk(store, &commit(0, 1, 1)).await.unwrap().tally().clone();
    let closed = store.skip_rest(guid(1), &seen, at(9)).await.unwrap();
    let skipped = Counts { skipped: 11, ..counts(1) };
    assert_eq!((closed.done, closed.counts, closed.bytes, closed.at), (3, skipped, 50, at(9)));
    assert!(closed.is_closed() && closed.mark(0).is_none());
    let Committed::Lost(late) = commit_chunk(store, &commit(0, 0, 2)).await.unwrap() else { panic!("counted twice") };
    assert_eq!(late, closed);
    let Committed::WonBefore(own) = commit_chunk(store, &commit(0, 1, 1)).await.unwrap() else { panic!("forgotten") };
    assert_eq!(own, closed);
    assert_eq!(store.skip_rest(guid(1), &closed, at(10)).await.unwrap().counts, skipped, "nothing is left to skip");
}

pub async fn a_tally_that_has_changed_since_it_was_read_is_not_closed(store: &impl JobStore) {
    let put = tally(0, 3);
    store.put_tally(guid(1), &put).await.unwrap();
    let moved = commit_chunk(store, &commit(0, 1, 1)).await.unwrap().tally().clone();
    assert_eq!(store.skip_rest(guid(1), &put, at(9)).await.unwrap(), moved, "a chunk was committed in between");
    assert_eq!(store.tally(guid(1), 1, 0).await.unwrap(), moved);
    assert!(matches!(store.skip_rest(guid(2), &put, at(9)).await, Err(PortError::NotFound)));
}

pub async fn a_sign_of_life_changes_only_the_time_of_a_tally(store: &impl JobStore) {
    store.put_tally(guid(1), &tally(0, 2)).await.unwrap();
    let seen = commit_chunk(store, &commit(0, 1, 1)).await.unwrap().tally().clone();
    store.touch(guid(1), 1, 0, at(8)).await.unwrap();
    let touched = Tally { at: at(8), ..seen };
    assert_eq!(store.tally(guid(1), 1, 0).await.unwrap(), touched);
    store.touch(guid(1), 1, 0, at(7)).await.unwrap();
    assert_eq!(store.tally(guid(1), 1, 0).await.unwrap(), touched, "time does not run backwards");
}

pub async fn a_sign_of_life_creates_no_tally(store: &impl JobStore) {
    store.touch(guid(1), 1, 0, at(8)).await.unwrap();
    assert!(matches!(store.tally(guid(1), 1, 0).await, Err(PortError::NotFound)));
    store.put_tally(guid(1), &tally(0, 2)).await.unwrap();
    assert_eq!(store.tally(guid(1), 1, 0).await.unwrap(), tally(0, 2), "nor is it in the way of one");
}
