/**
 * The part of the command line that `effect/cli` cannot parse, and parts of options that several commands have.
 *
 * `effect/cli` parses options anywhere in the line, up to the first `--`. Here the words of a server's command come
 * first, and the options among them belong to the server: in `skein-call --json node server.js --json -- add` the
 * second `--json` is for `server.js`. So {@link rewrite} finds the end of the server's words, and rewrites the line
 * to `<options> -- <server> <tool> <json>`, with the server as one word. A URL and a module are one word. After
 * `--config` there are no words of a server.
 */
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Param from "effect/cli/Param"
import * as Primitive from "effect/cli/Primitive"
import { isLoopback } from "@skein/protocol/Hostname"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { isModule, isProgramName } from "../base/nodeFiles.ts"

const urlScheme = /^https?:\/\//i

/** Whether the server is given by its URL rather than by a command. */
export const isUrl = (server: string): boolean => urlScheme.test(server)

const domainName = /^(?:(?:[a-z\d](?:[a-z\d-]*[a-z\d])?\.)+[a-z]{2,}|localhost|127(?:\.\d+){3})(?::\d{1,5})?$/i

// Some of them are domains of countries, too, but a program that does not exist is the more probable meaning.
const programExtension = /\.(?:exe|cmd|bat|sh|py|rb|pl|php|jar|rs|[cm]?[jt]sx?)$/i

/** Whether a word is a domain, such as `example.com`, rather than a program of this name. */
export const isDomain = (word: string): boolean =>
  domainName.test(word) && URL.canParse(`https://${word}`) && !programExtension.test(word) && !isProgramName(word)

/** An address without a scheme as the URL that is probably meant: by http only for this computer. */
export const withScheme = (address: string): string =>
  `${isLoopback(URL.parse(`http://${address}`)?.hostname ?? "") ? "http" : "https"}://${address}`

/**
 * Splits a command line at spaces outside quotes. No other shell syntax is supported: no expansion, no escapes.
 */
export const splitWords = (text: string): ReadonlyArray<string> => {
  const words = text.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? []
  return words.map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single))
}

/** The reverse of {@link splitWords}. */
const joinWords = (words: ReadonlyArray<string>): string =>
  words.map((word) => `'${word.replaceAll("'", `'"'"'`)}'`).join(" ")

interface Parts {
  /** Each option as one word, its value after `=`. */
  readonly options: ReadonlyArray<string>
  readonly words: ReadonlyArray<string>
}

/** Separates options from other words. With `leading` it stops at the first other word. */
const separate = (words: ReadonlyArray<string>, valueOptions: ReadonlySet<string>, leading: boolean): Parts => {
  const options: Array<string> = []
  const others: Array<string> = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    if (!word.startsWith("-") || word === "-" || word === "--") {
      if (leading) return { options, words: words.slice(at) }
      others.push(word)
      continue
    }
    const value = words[at + 1]
    if (value !== undefined && word.startsWith("--") && valueOptions.has(word.slice(2))) {
      options.push(`${word}=${value}`)
      at++
    } else options.push(word)
  }
  return { options, words: others }
}

/** How many of the last words are operands of the command, where a server's command has no end mark. */
export type CountOperands = (words: ReadonlyArray<string>) => number

/** Separates the words of the server, joined to one, from the options and operands after them. */
const divide = (
  words: ReadonlyArray<string>,
  valueOptions: ReadonlySet<string>,
  countOperands: CountOperands
): Parts => {
  const [first, ...rest] = words
  if (first === undefined) return { options: [], words: [] }
  const dashes = words.indexOf("--")
  // Without an end mark, a word with spaces is a command line.
  if (isUrl(first) || isModule(first) || isDomain(first) || (dashes < 0 && /\s/.test(first.trim()))) {
    const after = separate(rest, valueOptions, false)
    return { options: after.options, words: [first, ...after.words.filter((word) => word !== "--")] }
  }
  if (dashes >= 0) {
    const after = separate(words.slice(dashes + 1), valueOptions, false)
    return { options: after.options, words: [joinWords(words.slice(0, dashes)), ...after.words] }
  }
  const server = words.slice(0, words.length - Math.min(countOperands(words), words.length - 1))
  return { options: [], words: [joinWords(server), ...words.slice(server.length)] }
}

const isOption = (name: string) => (option: string): boolean => option === name || option.startsWith(`${name}=`)

/** The operands of a server that a configuration has. Its place among the operands is empty. */
const withoutServer = (before: Parts, valueOptions: ReadonlySet<string>): Parts => {
  const after = separate(before.words, valueOptions, false)
  const words = after.words.filter((word) => word !== "--")
  // Without `--server` the first operand is often its name. The others would be reported first, as invalid JSON.
  const hasServer = [...before.options, ...after.options].some(isOption("--server"))
  return { options: after.options, words: ["", ...hasServer ? words : words.slice(0, 1)] }
}

/** How the arguments of a command are rewritten before `effect/cli` parses them: an annotation of the command. */
class ServerWords extends Context.Service<ServerWords, {
  /** The options and the operands. */
  readonly config: Command.Command.Config
  readonly countOperands: CountOperands
}>()("@skein/cli/ServerWords") {}

/** The parameter itself, below `Flag.map`, `Flag.optional` and the like. */
const singleOf = (param: unknown): Param.Single<Param.ParamKind, unknown> | undefined =>
  !Param.isParam(param)
    ? undefined
    : Param.isSingle(param)
    ? param
    : singleOf((param as { readonly param?: unknown }).param)

/** The names of the options, without `--`, that are followed by a value. */
const valueOptionsOf = (config: Command.Command.Config): ReadonlySet<string> =>
  new Set(
    Object.values(config).flatMap((param) => {
      const single = singleOf(param)
      if (single === undefined || single.kind !== Param.flagKind) return []
      return Primitive.getTypeName(single.primitiveType) === "boolean" ? [] : [single.name]
    })
  )

/**
 * A command whose operands contain a server. {@link rewrite} finds the words of the server by the options of the
 * command and by `countOperands`. By default all words are those of the server.
 */
export const commandOnServer = <const Name extends string, const Config extends Command.Command.Config>(
  name: Name,
  config: Config,
  countOperands: CountOperands = () => 0
) => Command.make(name, config).pipe(Command.annotate(ServerWords, { config, countOperands }))

/**
 * Rewrites the arguments of a command of {@link commandOnServer} to `<options> -- <server> <operands>`. With `--config`
 * before the first operand, the server is empty. The arguments of other commands stay as they are.
 */
export const rewrite = (
  { annotations }: Pick<Command.Command.Any, "annotations">,
  argv: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const words = Option.getOrUndefined(Context.getOption(annotations, ServerWords))
  if (words === undefined) return argv
  const valueOptions = valueOptionsOf(words.config)
  const before = separate(argv, valueOptions, true)
  const after = before.options.some(isOption("--config"))
    ? withoutServer(before, valueOptions)
    : divide(before.words, valueOptions, words.countOperands)
  return [...before.options, ...after.options, "--", ...after.words]
}

/** The handler of a command. `load` imports its module, when the command runs. */
export const handledBy = <Runner, Line, E, R>(
  load: () => Promise<Runner>,
  run: (runner: Runner, line: Line) => Effect.Effect<void, E, R>
) =>
<const Name extends string, ContextInput>(command: Command.Command<Name, Line, ContextInput, unknown, unknown>) =>
  Command.withHandler(command, (line) => Effect.flatMap(Effect.promise(load), (runner) => run(runner, line)))

/** Fails the parsing of a command line. The message names the option, and no value that can be a secret. */
export const invalid = (message: string): Effect.Effect<never, CliError.ValidationError> =>
  Effect.fail(new CliError.ValidationError({ message }))

/** An option that may be repeated: the last one counts, so that a shell alias can set defaults. */
export const last = <A>(flag: Flag.Flag<A>): Flag.Flag<A | undefined> =>
  Flag.map(Flag.atLeast(flag, 0), (values) => values.at(-1))

type Parse<A> = (text: string) => Effect.Effect<A, CliError.ValidationError>

/** An option with a text, which `parse` reads. The last one counts. */
export const option = <A>(name: string, metavar: string, description: string, parse: Parse<A>) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.mapEffect(parse),
    last
  )

/** An option with any text. The last one counts. */
export const text = (name: string, metavar: string, description: string) =>
  option(name, metavar, description, Effect.succeed)

/** An option with any text, which may be repeated. All count. */
export const texts = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.atLeast(0))

/** An option with a whole number from 1 to `most`. */
export const wholeNumber = (name: string, description: string, byDefault: number, most: number, least: 0 | 1 = 1) =>
  option(
    name,
    "<number>",
    description,
    (text) =>
      /^(0|[1-9]\d{0,9})$/.test(text) && Number(text) >= least && Number(text) <= most
        ? Effect.succeed(Number(text))
        : invalid(`--${name} must be a whole number from ${least} to ${most}: ${JSON.stringify(text)}`)
  ).pipe(
    Flag.map((number = byDefault) => number)
  )

/** An option with the number of a port, from `least` on. */
export const portNumber = (metavar: string, description: string, least: number, name = "port") =>
  option(name, metavar, description, (text) =>
    /^\d+$/.test(text) && Number(text) >= least && Number(text) <= maxPort
      ? Effect.succeed(Number(text))
      : invalid(`--${name} must be a number from ${least} to ${maxPort}: ${JSON.stringify(text)}`))

const maxPort = 65_535

// A day, in seconds.
export const maxTimeout = 86_400

/** An option with a positive number of seconds, in milliseconds. */
export const seconds = (name: string, description: string) =>
  option(name, "<seconds>", description, (text) => {
    const seconds = Number(text)
    return seconds > 0 && seconds <= maxTimeout
      ? Effect.succeed(seconds * 1_000)
      : invalid(`--${name} must be a number of seconds, at most ${maxTimeout}: ${JSON.stringify(text)}`)
  })

/** As {@link seconds}, with a default in seconds, which the description names. */
export const secondsOr = (name: string, description: string, byDefault: number) =>
  seconds(name, `${description}: ${byDefault} by default`).pipe(Flag.map((time = byDefault * 1_000) => time))

/**
 * An option with one of these values. The completions of a shell suggest them, and `errorMessage` lists them in the report
 * about another value.
 */
export const choice = <const Values extends ReadonlyArray<string>>(
  name: string,
  values: Values,
  metavar: string,
  description: string
): Flag.Flag<Values[number]> =>
  Flag.Literals(name, values).pipe(Flag.withMetavar(metavar), Flag.withDescription(description))

/** An option without a value, which is `false` by default. */
export const toggle = (name: string, description: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(
    Flag.withoutNegation,
    Flag.withDescription(description),
    last,
    Flag.map((value) => value ?? false)
  )
