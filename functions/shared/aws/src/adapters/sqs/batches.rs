use rowmill_core::model::ids::Owner;

/// The maximum number of messages in a request.
const BATCH_MESSAGES: usize = 10;

/// The maximum total size of the messages of a request in bytes.
const BATCH_BYTES: usize = 1024 * 1024;

/// The maximum length of a message group's name.
const GROUP_MAX_CHARS: usize = 128;

/// Divides messages into batches within the limits of a request. Returns the positions of the messages of each batch.
pub fn batches(bodies: &[String]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut open_bytes = 0;
    for (place, body) in bodies.iter().enumerate() {
        let bytes = body.len();
        match batches.last_mut().filter(|batch| batch.len() < BATCH_MESSAGES && open_bytes + bytes <= BATCH_BYTES) {
            Some(batch) => {
                open_bytes += bytes;
                batch.push(place);
            }
            None => {
                open_bytes = bytes;
                batches.push(vec![place]);
            }
        }
    }
    batches
}

/// The message group of an owner: the name truncated to the maximum length, with every character replaced that SQS does
/// not allow. Two owners may get the same group. They then share its fair share, which is harmless.
pub fn group(owner: &Owner) -> String {
    let allowed = |c: char| c.is_ascii_graphic();
    let group: String =
        owner.as_str().chars().map(|c| if allowed(c) { c } else { '_' }).take(GROUP_MAX_CHARS).collect();
    if group.is_empty() { "_".to_owned() } else { group }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_ten_messages_at_most() {
        let bodies = vec!["x".to_owned(); 23];
        let sizes: Vec<_> = batches(&bodies).iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 10, 3]);
        assert!(batches(&[]).is_empty());
    }

    #[test]
    fn a_batch_has_a_mebibyte_at_most() {
        let kib = |count: usize| "x".repeat(count * 1024);
        let bodies = [kib(600), kib(424), kib(1), kib(1024), kib(1)];
        assert_eq!(batches(&bodies), [vec![0, 1], vec![2], vec![3], vec![4]]);
    }

    #[test]
    fn a_message_group_has_only_characters_that_sqs_allows() {
        let of = |name: &str| group(&Owner(name.to_owned()));
        assert_eq!(of("auth0|5f7c"), "auth0|5f7c");
        assert_eq!(of("zoë of Rome"), "zo__of_Rome");
        assert_eq!(of(""), "_");
        assert_eq!(of(&"a".repeat(300)).len(), 128);
    }
}
