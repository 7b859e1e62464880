//! The `rowmill` command: the embedded local stack, deployment, and the client of the API.

pub mod api;
pub mod aws;
pub mod bench;
pub mod command;
pub mod deploy;
pub mod download;
pub mod follow;
mod forget;
pub mod gateway;
pub mod login;
pub mod operate;
pub mod package;
pub mod progress;
pub mod stack;
pub mod template;
pub mod terminal;
pub mod top;
pub mod upload;
pub mod work;

mod address;
mod storage;

#[cfg(test)]
mod fake_api;
#[cfg(test)]
mod fixtures;
