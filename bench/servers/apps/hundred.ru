# A Rack application that answers at once, with 100 bytes.

HUNDRED = ('x' * 100).freeze
HEADERS = { 'Content-Type' => 'text/plain', 'Content-Length' => '100' }.freeze

run ->(_environment) { [200, HEADERS.dup, [HUNDRED]] }
