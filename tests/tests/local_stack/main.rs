//! End to end on the local stack: the functions' own binaries behind the Lambda runtime API, fed by SQS, over real
//! HTTP.
//!
//! All tests share one stack, brought up by the first of them in a folder of its own; it ends with this process.

mod access;
mod audits;
mod breakers;
mod causes;
mod clients;
mod command;
mod deaths;
mod dedupes;
mod emulator;
mod events;
mod fetches;
mod fleet;
mod formats;
mod gateway;
mod hostile;
mod hostile_workers;
mod inbox;
mod inputs;
mod jobs;
mod lanes;
mod live;
mod live_connections;
mod many_files;
mod pauses;
mod permissions;
mod priorities;
mod problems;
mod quotas;
mod redrives;
mod restore;
mod results;
mod rotation;
mod schemathesis;
mod service;
mod services;
mod stack;
mod stops;
mod targets;
mod tenants;
mod upgrade;
mod uploads;
mod watching;
mod workers;
