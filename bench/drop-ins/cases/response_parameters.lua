-- response() may take as much as it likes, and may change its mind.
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function response()
  none = (none or 0) + 1
  if none < 3 then
    return
  end
  response = function(status)
    first = status
    response = function(status, headers)
      second = type(headers) .. headers["X-Token"]:sub(1, 1)
      response = function(...)
        third = select("#", ...) .. type((select(3, ...)))
        response = function(status, headers, body)
          fourth = #body > 0
        end
      end
    end
  end
end

function done()
  for _, thread in ipairs(threads) do
    print(thread:get("none"), thread:get("first"), thread:get("second"), thread:get("third"),
      thread:get("fourth"))
  end
end
