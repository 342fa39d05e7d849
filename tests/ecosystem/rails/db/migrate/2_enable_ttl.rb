class EnableTtl < ActiveRecord::Migration[6.1]
  def up
    execute "SELECT ttl.enable('carts', '30 days')"
  end

  def down
    execute "SELECT ttl.disable('carts', drop_columns => true)"
  end
end
