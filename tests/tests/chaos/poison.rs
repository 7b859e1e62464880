//! An item that aborts its process fails alone. The other items of its chunk succeed.

use std::fmt::Write as _;

use serde_json::json;

use crate::stack::on_the_stack;

#[test]
fn a_poison_item_fails_alone() {
    on_the_stack(async |chaos| {
        let stack = &chaos.stack;
        // If the items of a chunk run one at a time, they take longer than one invocation.
        let mut csv = "id,ms,then\n".to_owned();
        for row in 1..=120 {
            let _ = writeln!(csv, "{row},50,{}", if row == 77 { "abort" } else { "go on" });
        }
        let file = stack.upload("text/csv", csv).await;
        let (job, ended) = stack.run("hostile", &file, json!({})).await;
        assert_eq!((&ended["status"], &ended["outcome"]), (&json!("completed"), &json!("partial")), "{ended}");
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(119), &json!(1)), "{ended}");

        let failed = stack.failed_items(&job).await;
        assert_eq!((failed.len(), &failed[0]["row"], &failed[0]["code"]), (1, &json!(77), &json!("poison")));
        assert_eq!(failed[0]["raw"], "77,50,abort", "kept for a redrive");

        // Its chunk became a dead letter. Others in its batch of messages may have too, but no isolated chunk.
        let letters = stack.dead_letters(&job).await;
        assert!(letters.iter().all(|letter| letter["about"] == "items"), "{letters:?}");
        let of_its_chunk = letters.iter().find(|letter| letter["chunk"]["firstRow"] == 51).expect("its dead letter");
        assert_eq!((&of_its_chunk["about"], &of_its_chunk["attempt"]), (&json!("items"), &json!(1)));
        assert_eq!(of_its_chunk["chunk"], json!({ "tally": 0, "index": 1, "firstRow": 51, "items": 50 }));
        assert_eq!(stack.job_rows(&job).await["job"].number("completions"), 1);
        stack.queues_are_empty().await;
    });
}
