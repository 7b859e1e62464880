//! The changes that make the emulator faster change no answer.

use std::path::Path;

use acceptance::local_stack::output;
use rowmill::progress::Progress;
use rowmill::stack::install_emulator;
use tokio::process::Command;

#[tokio::test]
async fn a_batch_of_statements_has_the_same_answer_and_effect_as_without_the_change() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = tests.parent().expect("tests lies in the workspace");
    let python = install_emulator(workspace, Progress::Shown).await.expect("the emulator is installed");
    let mut command = Command::new(python);
    command.arg("-I").arg(tests.join("emulator/same_answers.py")).arg(workspace.join("infra/local"));
    let (succeeded, text) = output(command).await;
    assert!(succeeded, "{text}");
}
