const { DataTypes } = require("sequelize");

module.exports = (sequelize) =>
  sequelize.define(
    "cart",
    {
      id: { type: DataTypes.INTEGER, primaryKey: true },
      owner: { type: DataTypes.TEXT, allowNull: false },
    },
    { tableName: "cart", timestamps: false, indexes: [{ unique: true, fields: ["owner"] }] },
  );
