# frozen_string_literal: true

# In place of the gem pg and a database: what the collector of web-frameworks stores goes, a line of
# JSON for each metric, to the file that DATABASE_ROWS names.

require 'json'

module PG
  # Labels get numbers as in a table with a column `label`; `values` keeps what `metrics` refers to.
  class Connection
    def initialize
      @tables = Hash.new { |tables, name| tables[name] = [] }
      @rows = File.open(ENV.fetch('DATABASE_ROWS'), 'a')
    end

    def query(sql, parameters)
      table = sql[/\AINSERT INTO (\w+)/, 1]
      return store(parameters) if table == 'metrics'

      known = @tables[table]
      known << parameters unless table != 'values' && known.include?(parameters)
      [{ 'id' => table == 'values' ? known.size - 1 : known.index(parameters) }]
    end

    def close
      @rows.close
    end

    private

    def store((value, framework, level))
      label, number = @tables['values'][value]
      @rows.puts({ framework: @tables['frameworks'][framework].last,
                   level: @tables['concurrencies'][level].last.to_s,
                   label: @tables['keys'][label].last, value: number }.to_json)
      []
    end
  end

  def self.connect(_address)
    Connection.new
  end
end
