//! Two tenants of one stack. `cargo run --bin tenants` does the same for minutes, and measures.

use std::path::Path;
use std::time::Duration;

use acceptance::tenants::SharedStack;

#[tokio::test]
async fn the_jobs_of_a_good_tenant_succeed_beside_every_hostile_input() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tenants");
    let stack = SharedStack::up(&folder, &[("ItemTimeoutSeconds", "3")]).await;
    let report = stack.run(Duration::ZERO).await;
    println!("{report}");
    let came_of = |name: &str, outcome: &str| report.answers[name].get(outcome).copied().unwrap_or_default();
    assert_eq!(came_of("recursion over a nested row", "202, then failed - item_timeout"), 1, "{report}");
    assert_eq!(came_of("choices to the bottom of a row", "202, then completed succeeded"), 1, "{report}");
    assert_eq!(came_of("the job and the file of another owner", "404 not_found"), 9, "{report}");
    let floods: Vec<&String> = report.answers.keys().filter(|name| name.starts_with("a flood of")).collect();
    assert_eq!(floods.len(), 5, "{report}");
    for flood in floods {
        assert!(came_of(flood, "429 too_many_requests") > 0, "{report}");
    }
    assert!(!report.beside.is_empty());
}
