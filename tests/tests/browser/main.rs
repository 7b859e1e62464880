//! The page in a browser: headless Chromium on the local stack.
//!
//! Without a Chromium on the PATH the tests say that they are skipped. `ROWMILL_REQUIRE_BROWSER=1` makes that a
//! failure, `ROWMILL_WRITE_SCREENSHOTS=1` writes the pictures in `docs/images`, `ROWMILL_BROWSER_ROWS` is the length of
//! the long job.

mod browser;
mod datasets;
mod failed_rows;
mod follow;
mod made_up;
mod new_job;
mod reach;
mod sign_in;
mod stack;
