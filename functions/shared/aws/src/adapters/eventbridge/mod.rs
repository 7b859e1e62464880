//! The event bus in EventBridge.

mod events;

pub use events::EventBridgeEvents;
