/**
 * The operands of the commands of `skein tasks` about tasks of a store or of a server, and the options of a server.
 */
import * as Argument from "effect/cli/Argument"
import * as Effect from "effect/Effect"
import type { StoreLine } from "../tasks/tasks.ts"
import { invalid } from "./commandLine.ts"
import {
  type AnsweringLine,
  checkOneServer,
  parseTarget,
  serverFlags,
  serverInvocationOf,
  type ServerLine
} from "./serverOptions.ts"

/** The words of a command line that are not options, and the first of them as a server. */
export interface Operands {
  readonly words: ReadonlyArray<string>
  readonly first: ServerLine["target"]
}

/** Which operands a command has after its server: none, or the id of a task. */
export type OperandKind = "list" | "task"

/** A parsed command line with a server or a store. */
export interface OnServerLine extends Omit<ServerLine, "target">, StoreLine, Partial<AnsweringLine> {
  readonly operands: Operands
}

/** The options of a connection, and the operands. */
export const serverTaskFlags = {
  ...serverFlags,
  operands: Argument.String("operands").pipe(
    Argument.variadic(),
    Argument.mapEffect((words) => Effect.map(parseTarget(words[0] ?? ""), (first): Operands => ({ words, first })))
  )
}

/** Whether the command line names a server, rather than a store. */
const hasServer = ({ config, operands: { words } }: OnServerLine, kind: OperandKind): boolean =>
  config !== undefined || words.length > (kind === "list" ? 0 : 1)

/** The id of the task: the last word. */
export const idOf = ({ operands: { words } }: OnServerLine): string => words.at(-1) ?? ""

/** The server of a valid command line. Undefined: its store is meant. */
export const serverTarget = (line: OnServerLine, kind: OperandKind) =>
  hasServer(line, kind)
    ? serverInvocationOf({ ...line, target: line.config === undefined ? line.operands.first : undefined })
    : undefined

/** Options that have a meaning for a server only. */
const isForServer = ({ env, exportName, headers, login, revision, server, timeout }: OnServerLine): boolean =>
  login || [exportName, revision, server, timeout].some((each) => each !== undefined) ||
  Object.keys({ ...env, ...headers }).length > 0

/**
 * Fails if the operands are not those of the command. `storeOptions` are the names of options that a server does not
 * have. Without them, the command has no store.
 */
export const checkOperands = <Line extends OnServerLine>(
  line: Line,
  kind: OperandKind,
  storeOptions?: ReadonlyArray<keyof Line & string>
) => {
  const { config, operands: { first, words }, postgres, sqlite } = line
  const most = (kind === "list" ? 1 : 2) - (config === undefined ? 0 : 1)
  if (kind === "task" && words.length === 0) return invalid("<id> is required")
  if (words.length > most) return invalid(`Unexpected arguments: ${words.slice(most).join(" ")}`)
  if (!hasServer(line, kind)) {
    if (storeOptions === undefined) {
      return invalid("A server is required before the id: its URL, its module, or its command as one word")
    }
    return isForServer(line)
      ? invalid("The options of a connection need a server before the other operands")
      : Effect.void
  }
  if (sqlite !== undefined || postgres !== undefined) {
    return invalid("--sqlite and --postgres cannot be used with a server: it has its store")
  }
  const wrong = storeOptions?.find((name) => line[name] !== undefined && line[name] !== false)
  if (wrong !== undefined) return invalid(`--${wrong} needs a store: a server does not have it`)
  const target = config === undefined ? first : undefined
  return checkOneServer({ ...line, target })
}
