//! `work-task`: lends tasks to workers outside of the stack, and takes their results.
//!
//! Behind `POST /api/tasks/lease` and `POST /api/tasks/{taskId}/beat`, `…/finish`, `…/products` and `…/release`.
//! [`lend`] finds a task for a worker, [`hold`] keeps it or gives it back, [`report`] takes its outcomes, [`products`]
//! the files of its items. Behind `GET /api/workers`, [`workers`] lists who has tasks, and [`asks`] notes that workers
//! ask. [`error`] says why they refuse, [`allowed`] who may work on what, [`handler`] maps the HTTP requests to the use
//! cases, [`mod@start`] builds them.

pub mod allowed;
pub mod asks;
pub mod declaration;
pub mod error;
pub mod handler;
pub mod hold;
pub mod lend;
pub mod products;
pub mod report;
pub mod start;
pub mod workers;
