class CreateCarts < ActiveRecord::Migration[6.1]
  def change
    create_table :carts do |t|
      t.string :owner, null: false, index: { unique: true }
      t.integer :items, null: false, default: 0
    end
  end
end
