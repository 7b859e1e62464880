//! The contract of [`Tasks`].

use uuid::Uuid;

use super::{at, run_checks};
use crate::fixtures;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::task::{Holder, Task, place_of};
use rowmill_core::ports::Tasks;

/// Checks a [`Tasks`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn tasks<S: Tasks>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        an_offered_task_reads_back,
        a_task_that_is_there_stays_as_it_is_unless_its_message_is_from_before_a_pause,
        due_tasks_come_longest_due_first,
        the_tasks_that_are_due_last_come_latest_first,
        the_tasks_of_a_job_are_those_of_no_other_a_page_at_a_time,
        owners_are_known_until_they_are_forgotten_as_seen,
        a_task_is_put_off_only_as_seen,
        a_task_is_removed_only_as_seen,
        the_last_ask_for_a_type_reads_back,
    );
}

fn task(tally: u32, owner: &str, second: i64) -> Task {
    let message = fixtures::chunk_message(tally, 0);
    let message = ChunkMessage { owner: Owner(owner.to_owned()), ..message };
    Task { job_type: "render".to_owned(), message, due_at: at(second), called: false, holder: None }
}

fn paused(task: &Task) -> Task {
    Task { message: ChunkMessage { epoch: task.message.epoch + 2, ..task.message.clone() }, ..task.clone() }
}

async fn read(tasks: &impl Tasks, of: &Task) -> Option<Task> {
    tasks.task(&of.job_type, &of.message.owner, of.id()).await.unwrap()
}

async fn an_offered_task_reads_back(tasks: &impl Tasks) {
    let offered = task(0, "ann", 1);
    assert_eq!(read(tasks, &offered).await, None);
    assert!(!tasks.are_there("render", &offered.message.owner).await.unwrap());
    tasks.offer(&offered, at(1)).await.unwrap();
    assert_eq!(read(tasks, &offered).await, Some(offered.clone()));
    assert!(tasks.are_there("render", &offered.message.owner).await.unwrap());
    let called = Task { called: true, ..task(1, "ann", 1) };
    tasks.offer(&called, at(1)).await.unwrap();
    assert_eq!(read(tasks, &called).await, Some(called));
    let other = Task { job_type: "mail".to_owned(), ..offered };
    assert_eq!(read(tasks, &other).await, None, "of another type");
    assert!(!tasks.are_there("mail", &other.message.owner).await.unwrap());
}

async fn a_task_that_is_there_stays_as_it_is_unless_its_message_is_from_before_a_pause(tasks: &impl Tasks) {
    let first = task(0, "ann", 1);
    tasks.offer(&first, at(1)).await.unwrap();
    tasks.offer(&Task { due_at: at(9), ..first.clone() }, at(2)).await.unwrap();
    assert_eq!(read(tasks, &first).await, Some(first.clone()));
    let later = Task { due_at: at(9), ..paused(&first) };
    tasks.offer(&later, at(3)).await.unwrap();
    assert_eq!(read(tasks, &first).await, Some(later.clone()));
    tasks.offer(&first, at(4)).await.unwrap();
    assert_eq!(read(tasks, &first).await, Some(later));
}

async fn due_tasks_come_longest_due_first(tasks: &impl Tasks) {
    for (tally, second) in [(0, 5), (1, 3), (2, 4), (3, 7)] {
        tasks.offer(&task(tally, "ann", second), at(1)).await.unwrap();
    }
    tasks.offer(&task(4, "bob", 1), at(1)).await.unwrap();
    let due = async |now, limit| {
        let due = tasks.due("render", &Owner("ann".to_owned()), at(now), limit).await.unwrap();
        due.iter().map(|task| task.message.address.tally).collect::<Vec<u32>>()
    };
    assert_eq!(due(5, 10).await, [1, 2, 0]);
    assert_eq!(due(9, 2).await, [1, 2]);
    assert!(due(2, 10).await.is_empty());
}

async fn the_tasks_that_are_due_last_come_latest_first(tasks: &impl Tasks) {
    for (tally, second) in [(0, 5), (1, 3), (2, 7)] {
        tasks.offer(&task(tally, "ann", second), at(1)).await.unwrap();
    }
    tasks.offer(&task(3, "bob", 9), at(1)).await.unwrap();
    let last = async |limit| {
        let last = tasks.due_last("render", &Owner("ann".to_owned()), limit).await.unwrap();
        last.iter().map(|task| task.message.address.tally).collect::<Vec<u32>>()
    };
    assert_eq!(last(10).await, [2, 0, 1]);
    assert_eq!(last(2).await, [2, 0]);
    assert!(tasks.due_last("mail", &Owner("ann".to_owned()), 10).await.unwrap().is_empty());
}

async fn the_last_ask_for_a_type_reads_back(tasks: &impl Tasks) {
    assert_eq!(tasks.last_ask("render").await.unwrap(), None);
    for second in [1, 9] {
        tasks.note_ask("render", at(second)).await.unwrap();
        assert_eq!(tasks.last_ask("render").await.unwrap(), Some(at(second)));
    }
    assert_eq!(tasks.last_ask("mail").await.unwrap(), None);
    assert!(tasks.owners("render", 0, 10).await.unwrap().is_empty(), "nobody has offered any");
}

async fn the_tasks_of_a_job_are_those_of_no_other_a_page_at_a_time(tasks: &impl Tasks) {
    let mut own: Vec<Task> = (8..13).map(|tally| task(tally, "ann", 1)).collect();
    own.sort_by_key(|task| task.id().to_string());
    let job_guid = JobGuid(Uuid::from_u128(7));
    let other = ChunkMessage { job_guid, ..own[0].message.clone() };
    let other = Task { message: other, ..own[0].clone() };
    for offered in own.iter().chain([&other]) {
        tasks.offer(offered, at(1)).await.unwrap();
    }
    let of = async |job, after: Option<&Task>, limit| {
        tasks.of_job("render", &Owner("ann".to_owned()), job, after.map(Task::id), limit).await.unwrap()
    };
    let job = own[0].id().job;
    assert_eq!(of(job, None, 10).await, own);
    assert_eq!(of(job, None, 3).await, own[..3]);
    assert_eq!(of(job, Some(&own[2]), 10).await, own[3..]);
    tasks.remove(&own[2]).await.unwrap();
    assert_eq!(of(job, Some(&own[2]), 1).await, own[3..4], "behind one that is gone");
    assert_eq!(of(job, Some(&own[4]), 10).await, []);
    assert_eq!(of(job_guid, None, 10).await, [other]);
}

async fn owners_are_known_until_they_are_forgotten_as_seen(tasks: &impl Tasks) {
    for (tally, owner, second) in [(0, "ann", 1), (1, "bob", 2), (2, "cid", 3)] {
        tasks.offer(&task(tally, owner, second), at(second)).await.unwrap();
    }
    let owners = async |from, limit| tasks.owners("render", from, limit).await.unwrap();
    let owner = |name: &str, second| (Owner(name.to_owned()), at(second));
    let mut all = [owner("ann", 1), owner("bob", 2), owner("cid", 3)];
    all.sort_by_key(|(owner, _)| place_of(owner));
    assert_eq!(owners(0, 10).await, all);
    assert_eq!(owners(place_of(&all[1].0), 1).await, [all[1].clone()]);
    assert!(tasks.owners("mail", 0, 10).await.unwrap().is_empty());
    tasks.offer(&task(3, "bob", 9), at(9)).await.unwrap();
    for (name, second) in [("ann", 1), ("bob", 2)] {
        tasks.forget_owner("render", &Owner(name.to_owned()), at(second)).await.unwrap();
    }
    let mut left = [owner("bob", 9), owner("cid", 3)];
    left.sort_by_key(|(owner, _)| place_of(owner));
    assert_eq!(owners(0, 10).await, left);
}

async fn a_task_is_put_off_only_as_seen(tasks: &impl Tasks) {
    let offered = task(0, "ann", 1);
    tasks.put_off(&offered, at(9), None).await.unwrap();
    assert_eq!(read(tasks, &offered).await, None, "a task that is gone stays so");
    tasks.offer(&offered, at(1)).await.unwrap();
    let holder = |name: &str, second| Holder { worker: name.to_owned(), since: at(second) };
    tasks.put_off(&offered, at(5), Some(&holder("w1", 2))).await.unwrap();
    let held = Task { due_at: at(5), holder: Some(holder("w1", 2)), ..offered.clone() };
    assert_eq!(read(tasks, &offered).await, Some(held.clone()));
    tasks.put_off(&offered, at(7), Some(&holder("w2", 3))).await.unwrap();
    assert_eq!(read(tasks, &offered).await, Some(held.clone()), "somebody was first");
    tasks.put_off(&held, at(8), None).await.unwrap();
    assert_eq!(read(tasks, &offered).await, Some(Task { due_at: at(8), ..held }));
}

async fn a_task_is_removed_only_as_seen(tasks: &impl Tasks) {
    let offered = task(0, "ann", 1);
    let again = Task { due_at: at(2), ..paused(&offered) };
    tasks.remove(&offered).await.unwrap();
    tasks.offer(&again, at(1)).await.unwrap();
    tasks.remove(&offered).await.unwrap();
    assert_eq!(read(tasks, &offered).await, Some(again.clone()), "it was offered again");
    tasks.remove(&task(7, "ann", 2)).await.unwrap();
    assert_eq!(read(tasks, &offered).await, Some(again.clone()), "another one");
    tasks.remove(&again).await.unwrap();
    assert_eq!(read(tasks, &again).await, None);
}
