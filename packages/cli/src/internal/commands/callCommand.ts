/**
 * The command line of `skein-call`: its options and operands, with their help.
 */
import type { Handle } from "@skein/client/RemoteTask"
import { isObject } from "@skein/protocol/JsonRpc"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { commandOnServer, type CountOperands, handledBy, invalid, option, text, toggle } from "./commandLine.ts"
import { describe, type Description } from "./help.ts"
import {
  answeringFlags,
  argumentWords,
  checkOneServer,
  checkServer,
  serverFlags,
  serverInvocationOf,
  targetArgument
} from "./serverOptions.ts"

const isHandle = (value: unknown): value is Handle => isObject(value) && typeof value["taskId"] === "string"

// The value can be a secret: no message quotes it.
const resumeFlag = option(
  "resume",
  "<handle>",
  "Wait for the result of a task that was left running, and answer its questions; takes its handle or its id. The task " +
    "goes on when the command ends",
  (text) => {
    if (!text.trimStart().startsWith("{")) return Effect.succeed<Handle>({ taskId: text })
    const handle = Result.try((): unknown => JSON.parse(text))
    return Result.isSuccess(handle) && isHandle(handle.success)
      ? Effect.succeed(handle.success)
      : invalid("--resume needs the handle of a task, or its id")
  }
)

const help: Description = {
  short: "Call a tool of a server, or list its tools",
  description: "Calls a tool of an MCP server, or lists its tools.",
  usage: [
    "[options] <url or module> [<tool> [<arguments>]]",
    "[options] \"<command and its arguments>\" [<tool> [<arguments>]]",
    "[options] <command> <its arguments…> <tool> <json object>",
    "[options] <command> <its arguments…> -- [<tool> [<arguments>]]",
    "[options] --resume <handle> <server>",
    "[options] --config <file> [--server <name> [<tool> [<arguments>]]]"
  ],
  examples: [
    "https://example.com/mcp",
    "src/server.ts brew tea=sencha cups=2 sugar=no",
    "\"node server.mjs\" greet '{\"name\":\"Ada\"}'",
    "--output chart.png src/server.ts chart",
    "--answer size=large --answer milk=yes \"node server.mjs\" order"
  ],
  footer:
    "Arguments are words of the form name=value, converted by the schema of the tool (repeat the name for an array), " +
    "words of the form name:=json, or one JSON object. The result goes to stdout. Without --server, the servers of the file of --config are listed. Exit codes: " +
    "0 success, 1 the tool reported an error, 2 invalid command line, 3 no connection or no result in time, 4 the " +
    "server refused the request or its answer was invalid, 5 the answers did not fit a form, which was declined, 6 a " +
    "question of the task of --resume needs an answer, and stays open, 130 interrupted."
}

/** The operands of a call are recognized by the arguments of the tool. */
const countCall: CountOperands = (words) => words.length >= 3 && /^\s*\{/.test(words.at(-1)!) ? 2 : 0

/** The command, which loads the client only when it runs. */
export const callCommand = <const Name extends string>(name: Name) =>
  commandOnServer(name, {
    ...serverFlags,
    ...answeringFlags,
    leave: toggle(
      "leave",
      "When interrupted or out of time, leave the task of the call running and print its handle to stdout; " +
        "without this option the task is cancelled"
    ),
    task: toggle(
      "task",
      "Start the call as a task and print its id, for skein tasks wait; with --json its handle. A call that the server " +
        "answers without a task is printed"
    ),
    resume: resumeFlag,
    output: text(
      "output",
      "<path>",
      "Write the image, the audio or the binary resource of the result to a file, or several into a folder; existing files " +
        "are replaced"
    ),
    json: toggle("json", "Print the whole result as JSON"),
    target: targetArgument,
    tool: Argument.String("tool").pipe(Argument.optional, Argument.map(Option.getOrUndefined)),
    args: argumentWords("tool")
  }, countCall).pipe(
    describe(help),
    Command.validate((line) => {
      const { leave, output, resume, task, tool } = line
      if (task && tool === undefined) return invalid("--task needs the tool to call")
      if (task && leave) return invalid("--task and --leave exclude each other: the task is left in any case")
      if (resume !== undefined && tool !== undefined) {
        return invalid(`--resume waits for a task and cannot call a tool: ${tool}`)
      }
      if (output !== undefined && tool === undefined && resume === undefined) {
        return invalid("--output needs the tool to call")
      }
      return tool === undefined && resume === undefined ? checkServer(line) : checkOneServer(line)
    }),
    handledBy(() => import("../calls/call.ts"), ({ runCall }, line) => runCall(serverInvocationOf(line)))
  )
