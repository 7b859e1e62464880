//! `web`: the page, which does in a browser what the API can do.
//!
//! Behind `GET /`, `GET /assets/{proxy+}` and `GET /api/client-config`. The page is in `assets/`: native modules and
//! custom elements, which the build joins into one script. [`files`] has the assets as the build embedded them,
//! [`config`] is what the page must know of the stack, [`policy`] says what the page may do in a browser, [`handler`]
//! maps the requests to these, [`limits`] has the settings, [`mod@start`] builds what it answers with.

pub mod config;
pub mod declaration;
pub mod files;
pub mod handler;
pub mod limits;
pub mod policy;
pub mod start;
