use super::fixtures::guid;
use crate::contract::at;
use rowmill_core::model::dead_letter::{DeadChunk, DeadLetter, DeadLetterKind};
use rowmill_core::ports::JobStore;

fn letter(message_id: &str, about: DeadLetterKind, second: i64) -> DeadLetter {
    let chunk = DeadChunk { tally: 3, index: 63, first_row: 1_000, items: 500 };
    let has_chunk = matches!(about, DeadLetterKind::Items | DeadLetterKind::Isolated);
    DeadLetter {
        message_id: message_id.into(),
        about: about.into(),
        attempt: 2,
        chunk: has_chunk.then_some(chunk),
        at: at(second),
    }
}

pub async fn a_job_without_dead_letters_has_none(store: &impl JobStore) {
    store.record_dead_letter(guid(2), &letter("m", DeadLetterKind::Items, 1)).await.unwrap();
    assert!(store.dead_letters(guid(1), 10).await.unwrap().is_empty());
}

pub async fn dead_letters_read_back_oldest_first(store: &impl JobStore) {
    let letters = [
        letter("d", DeadLetterKind::Items, 1),
        letter("a", DeadLetterKind::Isolated, 2),
        letter("c", DeadLetterKind::Split, 3),
        letter("b", DeadLetterKind::Completion, 4),
    ];
    for place in [2, 0, 3, 1] {
        store.record_dead_letter(guid(1), &letters[place]).await.unwrap();
    }
    assert_eq!(store.dead_letters(guid(1), 10).await.unwrap(), letters);
    assert!(store.dead_letters(guid(1), 0).await.unwrap().is_empty());
}

pub async fn a_dead_letter_that_is_recorded_again_does_not_change(store: &impl JobStore) {
    let first = letter("m", DeadLetterKind::Items, 1);
    store.record_dead_letter(guid(1), &first).await.unwrap();
    store.record_dead_letter(guid(1), &letter("m", DeadLetterKind::Items, 9)).await.unwrap();
    assert_eq!(store.dead_letters(guid(1), 10).await.unwrap(), [first]);
}

pub async fn no_more_dead_letters_are_listed_than_asked_for(store: &impl JobStore) {
    for number in 0..60 {
        let message_id = format!("message {}", (number * 7) % 60);
        store.record_dead_letter(guid(1), &letter(&message_id, DeadLetterKind::Items, number)).await.unwrap();
    }
    let all = store.dead_letters(guid(1), 60).await.unwrap();
    assert!(all.iter().map(|letter| letter.at).eq((0..60).map(at)));
    let found = store.dead_letters(guid(1), 50).await.unwrap();
    assert_eq!(found.len(), 50);
    assert!(found.is_sorted_by_key(|letter| letter.at));
    assert!(found.iter().all(|letter| all.contains(letter)));
}
