/**
 * The help and the error messages of every command, as text.
 */
import type * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import type { FlagDoc, HelpDoc } from "effect/cli/HelpDoc"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import { wrap as wrapLines } from "../base/columns.ts"

/** Help that `effect/cli` cannot derive from a command: an annotation of the command. */
export class HelpText extends Context.Service<HelpText, {
  /** The forms of the command line, without the name of the command. */
  readonly usage: ReadonlyArray<string>
  /** Command lines, without the name of the command. */
  readonly examples?: ReadonlyArray<string>
  /** The text after the options. */
  readonly footer: string
}>()("@skein/cli/HelpText") {}

/** The help of a command, with its lines in the list of commands and above its options. */
export interface Description extends Context.Service.Shape<typeof HelpText> {
  readonly short: string
  readonly description: string
}

/** Adds the help of a command. */
export const describe =
  ({ description, short, ...help }: Description) =>
  <const Name extends string, Input, ContextInput, E, R>(command: Command.Command<Name, Input, ContextInput, E, R>) =>
    command.pipe(
      Command.withShortDescription(short),
      Command.withDescription(description),
      Command.annotate(HelpText, help)
    )

// The width of the help, in characters.
const maxWidth = 120

/** Breaks a text at spaces, with the same indentation for each line but the first. */
const wrap = (text: string, indent: number): string =>
  wrapLines(text, maxWidth - indent).join(`\n${" ".repeat(indent)}`)

const signature = ({ aliases, name, type }: FlagDoc): string => {
  const names = [`--${name}`, ...aliases].join(", ")
  return type === "boolean" ? names : `${names} ${type}`
}

/** The forms of a command line. */
const usageOf = (doc: HelpDoc, path: string): ReadonlyArray<string> => {
  const text = Option.getOrUndefined(Context.getOption(doc.annotations, HelpText))
  return text === undefined ? [doc.usage] : text.usage.map((form) => `${path} ${form}`)
}

/** The text after the errors of a command line. The whole help would push the errors out of the terminal. */
export const formatUsage = (doc: HelpDoc, commandPath: ReadonlyArray<string>): string => {
  const path = commandPath.join(" ")
  return `${usageOf(doc, path).map((form) => `  ${form}`).join("\n")}\n\n${path} --help lists the ${
    doc.subcommands === undefined ? "options" : "commands"
  }.`
}

/** The text of `--help`. */
export const formatHelp = (doc: HelpDoc, commandPath: ReadonlyArray<string>): string => {
  const path = commandPath.join(" ")
  const text = Option.getOrUndefined(Context.getOption(doc.annotations, HelpText))
  const usage = usageOf(doc, path)
  // --version and --completions are for the program: the help of a command does not repeat them.
  const globals = (doc.globalFlags ?? []).filter(({ name }) => name === "help" || commandPath.length === 1)
  const flags = [...doc.flags, ...doc.inheritedFlags ?? [], ...globals]
    .map((flag) => [signature(flag), Option.getOrElse(flag.description, () => "")] as const)
  const column = 5 + Math.max(...flags.map(([term]) => term.length))
  const commands = (doc.subcommands ?? []).flatMap(({ commands }) => commands)
  const commandColumn = 4 + Math.max(...commands.map(({ name }) => name.length))
  const examples = (text?.examples ?? []).map((line) => `  ${path} ${line}`)
  return [
    wrap(doc.description, 0),
    usage.map((form) => `  ${form}`).join("\n"),
    commands.map(({ description, name, shortDescription }) =>
      `  ${name}`.padEnd(commandColumn) + wrap(shortDescription ?? description, commandColumn)
    ).join("\n"),
    flags.map(([term, description]) => `  ${term}`.padEnd(column) + wrap(description, column)).join("\n"),
    examples.length === 0 ? "" : ["Examples:", ...examples].join("\n"),
    text === undefined ? "" : wrap(text.footer, 0)
  ].filter((part) => part !== "").join("\n\n") + "\n"
}

/** Whether a command calls tools, whose arguments are not options. */
const isCall = (path: ReadonlyArray<string> | undefined): boolean => /^(?:skein-)?call$/.test(path?.at(-1) ?? "")

/** Describes in one line what is wrong with a command line. */
export const errorMessage = (error: CliError.NonShowHelpErrors): string => {
  switch (error._tag) {
    case "UnrecognizedOption": {
      const [suggestion] = error.suggestions
      if (suggestion !== undefined) return `Unknown option ${error.option}; did you mean ${suggestion}?`
      const [, argument] = isCall(error.command) ? /^--(\w+)$/.exec(error.option) ?? [] : []
      return `Unknown option ${error.option}${
        argument === undefined ? "" : `; write an argument of the tool as ${argument}=<value>`
      }`
    }
    case "UnexpectedArgument":
      return `Unexpected arguments: ${error.arguments.join(" ")}`
    case "UnknownSubcommand": {
      const [suggestion] = error.suggestions
      return `Unknown command ${error.subcommand}${suggestion === undefined ? "" : `; did you mean ${suggestion}?`}`
    }
    case "MissingArgument":
      return `<${error.argument}> is required`
    case "InvalidValue":
      if (/^"[^"]*"( \| "[^"]*")+$/.test(error.expected)) {
        const values = error.expected.replaceAll(" | ", ", ").replaceAll("\"", "")
        return `--${error.option} must be one of ${values}: ${JSON.stringify(error.value)}`
      }
      return error.kind === "flag" && error.value === ""
        ? `--${error.option} needs a value: ${error.expected}`
        : error.message
    default:
      return error.message
  }
}
