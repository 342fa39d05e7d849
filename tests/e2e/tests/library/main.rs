//! Promise: the library comes and goes, and whatever else is in the server does not notice it.

mod errors_unharmed;
mod hook_chain;
mod lifecycle;
mod reference;
