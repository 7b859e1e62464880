//! The committed document against the one that is made from the types.

use std::path::Path;

use rowmill_api::openapi::document;

/// Set to `1`, it makes the test write the document instead of comparing it.
const WRITE: &str = "ROWMILL_WRITE_OPENAPI";

#[test]
fn the_committed_document_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/openapi.json");
    let generated = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if std::env::var_os(WRITE).is_some_and(|value| value == "1") {
        std::fs::write(&path, generated).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = generated.lines().zip(committed.lines().chain(std::iter::repeat(""))).zip(1..);
    let different = lines.into_iter().find(|((generated, committed), _)| generated != committed);
    assert!(
        generated == committed,
        "docs/openapi.json is out of date at line {:?}; run `{WRITE}=1 cargo test -p rowmill-api` and commit it",
        different.map(|(_, line)| line)
    );
}
