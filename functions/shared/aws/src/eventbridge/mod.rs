//! The bus of events in EventBridge.

mod events;

pub use events::EventBridgeEvents;
