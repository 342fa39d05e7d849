# shellcheck shell=bash
# Sequelize: sync with `alter`, which drops what the model does not have unless told otherwise.
use_npm
node checks.js
expect_ttl cart
