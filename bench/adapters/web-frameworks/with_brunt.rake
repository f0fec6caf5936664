# frozen_string_literal: true

# brunt in place of the load generator of the-benchmarker/web-frameworks, be it oha or wrk.
#
# To use it: copy this file into .tasks, put brunt into PATH (or its path into BRUNT), and run
# `rake config`. The board reads the files of .tasks by name, this one behind those that define the
# commands. brunt takes the command lines of these tools and writes their JSON, so the collector
# stays as it is.

BRUNT = ENV.fetch('BRUNT', 'brunt')
BRUNT_TOOL = %r{(?<=\A|\s)(?:\S*/)?(oha|wrk)(?= -)}

brunt_version = begin
  IO.popen([BRUNT, '--version'], err: File::NULL, &:read)
rescue Errno::ENOENT
  ''
end
brunt_version.start_with?('brunt ') ||
  abort("#{BRUNT} is not brunt; put it into PATH, or set BRUNT")

alias commands_of_the_board commands_for

# The board's commands, each with `brunt TOOL` where they call a tool.
def commands_for(...)
  result = commands_of_the_board(...)
  result.fetch(:commands, result).each_value do |lines|
    lines.map! { |line| line.gsub(BRUNT_TOOL) { "#{BRUNT} #{Regexp.last_match(1)}" } }
  end
  result
end
