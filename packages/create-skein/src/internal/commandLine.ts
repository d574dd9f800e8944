/**
 * The command line, and the questions that it leaves open.
 */
import { parseArgs } from "node:util"
import type { PackageManager, Style, Template } from "./choices.ts"
import { defaults, nameOf, nameProblem, packageManagers, styles, templates } from "./choices.ts"

/** A mistake in the command line, whose message is for the user. */
export class UsageError extends Error {}

/** A parsed command line. An absent choice was not given. */
export interface CommandLine {
  readonly folder: string | undefined
  readonly name: string | undefined
  readonly template: Template | undefined
  readonly style: Style | undefined
  readonly packageManager: PackageManager | undefined
  readonly yes: boolean
  readonly install: boolean
  readonly git: boolean
  readonly help: boolean
  readonly version: boolean
}

const rows = (choices: Readonly<Record<string, string>>): string =>
  Object.entries(choices).map(([name, text]) => `                              ${name.padEnd(8)}${text}`).join("\n")

export const usage = `Creates a Model Context Protocol server, or a host of servers, with Skein.

  npm create skein [folder] -- [options]
  npx create-skein [folder] [options]

  --template <name>         the kind of program:
${rows(templates)}
  --style <name>            how its handlers are written:
${rows(styles)}
  --name <name>             the name of the package; by default that of the folder
  --package-manager <name>  ${Object.keys(packageManagers).join(", ")}; by default the one that runs this command
  --yes, -y                 asks nothing, and uses the defaults: ${defaults.folder}, ${defaults.template}, ${defaults.style}
  --no-install              does not install the dependencies
  --no-git                  does not create a git repository
  --help, -h                shows this text
  --version                 shows the version

The folder must be new or empty. Options that are missing are asked for on a terminal.

Exit codes: 0 the project is created; 1 it cannot be created, or its dependencies cannot be installed; 2 the command
line is not valid; 130 interrupted.
`

const choose = <A extends string>(
  option: string,
  value: string | undefined,
  choices: Readonly<Record<A, unknown>>
): A | undefined => {
  if (value === undefined || Object.hasOwn(choices, value)) return value as A | undefined
  const shown = JSON.stringify([...value].slice(0, 100).join(""))
  throw new UsageError(`--${option} cannot be ${shown}: use one of ${Object.keys(choices).join(", ")}`)
}

const options = {
  template: { type: "string" },
  style: { type: "string" },
  name: { type: "string" },
  "package-manager": { type: "string" },
  yes: { type: "boolean", short: "y", default: false },
  install: { type: "boolean", default: true },
  git: { type: "boolean", default: true },
  help: { type: "boolean", short: "h", default: false },
  version: { type: "boolean", default: false }
} as const

const parsed = (argv: ReadonlyArray<string>) => {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, allowNegative: true })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

type Env = Readonly<Record<string, string | undefined>>

/**
 * Returns the error of several words. Without `--`, npm takes the options as its own: the program gets their values
 * alone, and variables named after the options.
 */
const unexpected = (words: ReadonlyArray<string>, env: Env): string => {
  const valueOf = (option: string, choices: object): string | undefined =>
    [...words, env[`npm_config_${option}`]].find((word) => word !== undefined && Object.hasOwn(choices, word))
  const given = Object.entries({ template: valueOf("template", templates), style: valueOf("style", styles) })
    .filter(([, value]) => value !== undefined)
  const isTaken = env["npm_config_template"] !== undefined || env["npm_config_style"] !== undefined
  if (!isTaken && given.length === 0) return `Unexpected arguments: ${words.slice(1).join(" ")}`
  const others = words.filter((word) => !given.some(([, value]) => value === word))
  const options = given.length === 0 ? ["[options]"] : given.map(([option, value]) => `--${option} ${value}`)
  return `npm needs -- before the options: npm create skein ${[...others, "--", ...options].join(" ")}`
}

/** Parses the arguments. `env` has the variables of npm. Throws `UsageError`. */
export const parse = (
  argv: ReadonlyArray<string>,
  env: Env = {}
): CommandLine => {
  const { positionals, values: { "package-manager": packageManager, name, style, template, ...switches } } = parsed(
    argv
  )
  const [folder, ...more] = positionals
  if (more.length > 0) throw new UsageError(unexpected(positionals, env))
  const problem = name === undefined ? undefined : nameProblem(name)
  if (problem !== undefined) throw new UsageError(problem)
  return {
    ...switches,
    folder,
    name,
    template: choose("template", template, templates),
    style: choose("style", style, styles),
    packageManager: choose("package-manager", packageManager, packageManagers)
  }
}

/** Asks the user one question: until the answer is valid, with a default for an empty one. */
export type Ask = <A extends string>(
  question: string,
  initial: A,
  check: (answer: string) => { readonly value: A } | { readonly problem: string }
) => Promise<A>

const oneOf = <A extends string>(ask: Ask, what: string, choices: Readonly<Record<A, unknown>>, initial: A) => {
  const names = Object.keys(choices) as ReadonlyArray<string> as ReadonlyArray<A>
  const lines = names.map((name, at) => {
    const text = choices[name]
    return `  ${at + 1}. ${typeof text === "string" ? `${name.padEnd(8)}${text}` : name}`
  })
  return ask(`${what}\n${lines.join("\n")}\nName or number`, initial, (answer) => {
    const name = names[Number(answer) - 1] ?? names.find((name) => name === answer.toLowerCase())
    return name === undefined ? { problem: `Type one of ${names.join(", ")}` } : { value: name }
  })
}

/** All choices. */
export interface Answers {
  readonly folder: string
  readonly name: string
  readonly template: Template
  readonly style: Style
  readonly packageManager: PackageManager
}

/** Completes the command line by questions, or by the defaults without `ask`. Throws `UsageError`. */
export const complete = async (line: CommandLine, manager: PackageManager, ask: Ask | undefined): Promise<Answers> => {
  const given = line.folder ?? (line.name === undefined ? undefined : nameOf(line.name))
  const folder = given ?? await ask?.("Folder", defaults.folder, (value) => ({ value })) ?? defaults.folder
  const name = line.name ?? nameOf(folder)
  const problem = nameProblem(name)
  if (problem !== undefined) throw new UsageError(`${problem}. Set another name with --name`)
  const { packageManager, style, template } = line
  return {
    folder,
    name,
    template: template ??
      (ask === undefined ? defaults.template : await oneOf(ask, "Template", templates, defaults.template)),
    style: style ?? (ask === undefined ? defaults.style : await oneOf(ask, "Style", styles, defaults.style)),
    packageManager: packageManager ??
      (ask === undefined || !line.install ? manager : await oneOf(ask, "Package manager", packageManagers, manager))
  }
}
