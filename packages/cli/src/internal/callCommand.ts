/**
 * The command line of `skein-call`: its options and operands, with their help.
 */
import type { Handle } from "@skein/client/RemoteTask"
import { isObject } from "@skein/protocol/JsonRpc"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { invalid, last, toggle, type ValueOptions } from "./commandLine.ts"
import { HelpText } from "./help.ts"
import {
  answeringFlags,
  type AnsweringLine,
  answerValueOptions,
  checkNamed,
  checkServer,
  serverFlags,
  type ServerInvocation,
  serverInvocationOf,
  type ServerLine,
  targetArgument,
  valueOptionsOf
} from "./serverOptions.ts"

/** A parsed command line. */
export interface Invocation extends ServerInvocation {
  /** The tool to call. Without a tool and without `resume`, the tools are listed. */
  readonly tool: string | undefined
  readonly args: Readonly<Record<string, unknown>> | undefined
  /** Whether the task of a call continues at the server when this program stops waiting for it. */
  readonly leave: boolean
  /** The task to wait for, instead of a call of a tool. */
  readonly resume: Handle | undefined
}

const isHandle = (value: unknown): value is Handle => isObject(value) && typeof value["taskId"] === "string"

const parseJson = (text: string) => Result.try((): unknown => JSON.parse(text))

/** An operand that is a JSON object. `owner` has the arguments, in messages: `tool`. */
export const jsonArgument = (owner: string) =>
  Argument.String("json").pipe(
    Argument.mapEffect((text) => {
      const args = parseJson(text)
      if (Result.isFailure(args)) {
        const { failure: cause } = args
        return invalid(`The ${owner}'s arguments are not valid JSON: ${cause instanceof Error ? cause.message : cause}`)
      }
      return isObject(args.success)
        ? Effect.succeed(args.success)
        : invalid(`The ${owner}'s arguments must be a JSON object`)
    }),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  )

// The value can be a secret: no message quotes it.
const resumeFlag = Flag.String("resume").pipe(
  Flag.withMetavar("<handle>"),
  Flag.withDescription(
    "Wait for the result of a task that was left running, and answer its questions; takes its handle or its id"
  ),
  Flag.mapEffect((text) => {
    if (!text.trimStart().startsWith("{")) return Effect.succeed<Handle>({ taskId: text })
    const handle = parseJson(text)
    return Result.isSuccess(handle) && isHandle(handle.success)
      ? Effect.succeed(handle.success)
      : invalid("--resume needs the handle of a task, or its id")
  }),
  last
)

/** The options that are followed by a value. */
export const valueOptions: ValueOptions = /* @__PURE__ */ valueOptionsOf("resume", ...answerValueOptions)

const help = {
  usage: [
    "[options] <url> [<tool> [<json>]]",
    "[options] \"<command and its arguments>\" [<tool> [<json>]]",
    "[options] <command> <its arguments…> <tool> <json object>",
    "[options] <command> <its arguments…> -- [<tool> [<json>]]",
    "[options] --resume <handle> <url or command>",
    "[options] --config <file> [--server <name> [<tool> [<json>]]]"
  ],
  examples: [
    "https://example.com/mcp",
    "\"node server.mjs\" greet '{\"name\":\"Ada\"}'",
    "--answer size=large --answer milk=yes \"node server.mjs\" order"
  ],
  footer: "The result goes to stdout. Without --server, the servers of the file of --config are listed. Exit codes: " +
    "0 success, 1 the tool reported an error, 2 invalid command line, 3 no connection or no result in time, 4 the " +
    "server refused the request or its answer was invalid, 5 the answers did not fit a form, which was declined, " +
    "130 interrupted."
}

/**
 * The options and operands of the command, without its handler. It parses a command line that `normalize` has
 * rewritten.
 */
export const callOptions = <const Name extends string>(name: Name) =>
  Command.make(name, {
    ...serverFlags,
    ...answeringFlags,
    leave: toggle(
      "leave",
      "When interrupted or out of time, leave the task of the call running and print its handle to stdout; " +
        "without this option the task is cancelled"
    ),
    resume: resumeFlag,
    json: toggle("json", "Print the whole result as JSON"),
    target: targetArgument,
    tool: Argument.String("tool").pipe(Argument.optional, Argument.map(Option.getOrUndefined)),
    args: jsonArgument("tool")
  }).pipe(
    Command.withDescription("Calls a tool of an MCP server, or lists its tools."),
    Command.annotate(HelpText, help),
    Command.validate((line) => {
      const { resume, tool } = line
      if (resume !== undefined && tool !== undefined) {
        return invalid(`--resume waits for a task and cannot call a tool: ${tool}`)
      }
      return Effect.andThen(
        checkServer(line),
        tool === undefined && resume === undefined ? Effect.void : checkNamed(line)
      )
    })
  )

/** The invocation of a valid command line. */
export const invocationOf = (
  line: ServerLine & AnsweringLine & Pick<Invocation, "tool" | "args" | "leave" | "resume" | "json">
): Invocation => serverInvocationOf(line)

/** The command, which loads the client only when it runs. */
export const callCommand = <const Name extends string>(name: Name) =>
  callOptions(name).pipe(
    Command.withHandler((line) =>
      Effect.flatMap(Effect.promise(() => import("./call.ts")), ({ runCall }) => runCall(invocationOf(line)))
    )
  )
