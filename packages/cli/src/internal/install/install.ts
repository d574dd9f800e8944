/**
 * Runs `install`: writes the entry of a server into the file of a host.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import { cut } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { colorChanges, plain } from "../base/colors.ts"
import { changedLines, presentEntry, withEntry } from "./configEdit.ts"
import { entryName } from "./entryName.ts"
import { quoteLine, sanitize } from "../base/format.ts"
import { existing, type Place, readText, replaceText, thisPlace } from "../base/nodeFiles.ts"
import type { Target } from "../connection/connection.ts"
import { type Host, type HostName, hosts, type InstalledServer, noUrls } from "./hosts.ts"
import { type CommandFailed, failed, Process } from "../base/process.ts"
import { tomlEntry, withTomlEntry } from "./tomlEdit.ts"

/** A parsed command line of `install`. */
export interface InstallLine {
  readonly target: Target
  /** The export of a module that is the server. Undefined: default, or the only one. */
  readonly exportName?: string | undefined
  readonly host: HostName
  /** The name of the entry. Undefined: derived from the server. */
  readonly name: string | undefined
  readonly headers: Readonly<Record<string, string>>
  /** A variable without a value gets the value that it has in this process. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether the file is that of the project, where the host has two files. */
  readonly project: boolean
  /** Whether to write without asking. */
  readonly yes: boolean
  /** Whether to replace the entry of another server, which has the same name. */
  readonly force: boolean
  /** Whether to print the entry instead of writing it. */
  readonly print: boolean
  readonly json: boolean
}

/** The variables of the entry. One without a value must have one in this process. */
const variables = Effect.fnUntraced(function*(
  env: InstallLine["env"],
  inherited: Place["env"]
): Effect.fn.Return<Readonly<Record<string, string>>, CommandFailed> {
  const entries: Array<readonly [string, string]> = []
  for (const [name, given] of Object.entries(env)) {
    const value = given ?? inherited[name]
    if (value === undefined) return yield* failed(2, `--env ${name} has no value, and ${name} is not set here`)
    entries.push([name, value])
  }
  return Object.fromEntries(entries)
})

/** A host starts the command in a folder of its own: a path that exists from this one becomes absolute. */
const absolute = (folder: string) => (word: string): string =>
  /^[^-].*[\\/.]|^\.$/.test(word) ? existing(folder, word) ?? word : word

/** The server of an entry in the file of another host. Its variables are not copied: hosts write them differently. */
const configured = (file: string, name: string): Effect.Effect<InstalledServer, CommandFailed> =>
  Effect.gen(function*() {
    const { parse, read } = yield* Effect.promise(() => import("@skein/client/ServerConfig"))
    const text = yield* Effect.mapError(readText(file), ({ message }) => failed(2, message))
    const { disabled, entries, problems } = yield* parse(text, file).pipe(
      Effect.flatMap((config) => read(config, { source: file, servers: (each) => each === name })),
      Effect.mapError(({ message }) => failed(2, message))
    )
    const [problem] = problems
    if (problem !== undefined) return yield* failed(2, `${problem.message}. Install the command or the URL instead`)
    const [entry] = entries
    if (entry === undefined) {
      const is = disabled.includes(name) ? "is disabled in" : "is not in"
      return yield* failed(2, `The server ${JSON.stringify(name)} ${is} ${file}`)
    }
    const unsupported = (members: string) =>
      failed(2, `The server ${JSON.stringify(name)} has ${members}, which not all hosts support`)
    if (entry.type !== "stdio") {
      if (entry.type === "sse") return yield* unsupported("the type sse")
      return { _tag: "Url", url: entry.url, headers: entry.headers }
    }
    const { args, command, cwd, env, envFile } = entry
    if (cwd !== undefined || envFile !== undefined) return yield* unsupported("cwd or envFile")
    // A variable that is `null` in the file is removed from the environment, which hosts do not pass on.
    const values = Object.entries(env).flatMap(([key, value]) => value === undefined ? [] : [[key, value] as const])
    return { _tag: "Command", command, args, env: Object.fromEntries(values) }
  })

/**
 * The command that serves a module. The file of a project can be used on other computers, so it starts the program of the
 * project. Another file has the paths of this program and this Node, since a host often has another `PATH`.
 */
const servingModule = ({ exportName }: InstallLine, file: string, { folder }: Place, isProject: boolean) =>
  Effect.map(Effect.promise(() => import("../base/nodeProgram.ts")), ({ runCommandLine }) => {
    const module = isProject ? file.replaceAll("\\", "/") : existing(folder, file) ?? file
    const line = runCommandLine({ module, exportName })
    return isProject ? { command: "npx", args: ["skein", ...line.args.slice(line.args.indexOf("run"))] } : line
  })

const serverOf = (
  line: InstallLine,
  place: Place,
  isProject: boolean
): Effect.Effect<InstalledServer, CommandFailed> => {
  const { env, headers, target } = line
  switch (target._tag) {
    case "Configured":
      return configured(target.file, target.server ?? "")
    case "Url":
      return Effect.succeed({ _tag: "Url", url: target.url.href, headers })
    case "Module":
      return Effect.zipWith(
        variables(env, place.env),
        servingModule(line, target.file, place, isProject),
        (env, { args, command }) => ({ _tag: "Command", command, args, env })
      )
    case "Command":
      return Effect.map(variables(env, place.env), (env) => {
        const word = isProject ? (word: string) => word : absolute(place.folder)
        return { _tag: "Command", command: word(target.command), args: target.args.map(word), env }
      })
  }
}

/** The text of the file with the entry, and the text that it has now: "" if there is no file. */
const edit = Effect.fnUntraced(function*(file: string, { format, member }: Host, name: string, entry: JsonObject) {
  const before = yield* Effect.catch(
    readText(file),
    ({ message, problem }) => problem === "ENOENT" ? Effect.succeed("") : failed(3, message)
  )
  // The parsers are recursive.
  const edit = Nesting.refusing(
    format === "toml"
      ? (text: string) => withTomlEntry(text, member, name, entry)
      : (text: string) => withEntry(text, member, name, entry),
    () => Result.fail(Nesting.problem)
  )
  const after = edit(before)
  return Result.isSuccess(after)
    ? { before, after: after.success }
    : yield* failed(3, `${file} ${after.failure}. Nothing was written`)
})

/** The last word of the command that serves a module, which is its path; and the whole command line of other servers. */
const placeOf = (entry: JsonObject): string => {
  const { args, command, httpUrl, url = httpUrl } = entry
  if (typeof url === "string") return url
  const words = [command, ...Array.isArray(args) ? args : []].map(String)
  return words.includes("run") && words.some((word) => /skein(?:\.[jt]s)?$/.test(word))
    ? words.at(-1)!
    : words.join(" ")
}

/** The server of an entry that a new entry would replace, if it is another one. Its variables are not shown. */
const otherServer = (present: unknown, entry: JsonObject): string | undefined => {
  if (present === undefined) return undefined
  if (!isObject(present)) return "an entry that is not an object"
  const place = placeOf(present)
  return place === placeOf(entry) ? undefined : quoteLine(cut(place, maxPlace))
}

// How much of the command line of another server a message shows, in characters.
const maxPlace = 200

/** Asks for the confirmation of a change. */
const confirm = Effect.fnUntraced(function*(question: string): Effect.fn.Return<boolean, CommandFailed, Process> {
  const { terminal } = yield* Process
  if (terminal === undefined) {
    return yield* failed(
      2,
      "There is no terminal to confirm the change on: write it with --yes, or see it with --print"
    )
  }
  while (true) {
    const typed = yield* terminal.readLine(`${question} [y]es, [n]o: `)
    if (typed === undefined || /^n/i.test(typed.trim())) return false
    if (/^y/i.test(typed.trim())) return true
  }
})

/** `skein install`. `place` is that of this process by default. */
export const install = (line: InstallLine, given?: Place): Effect.Effect<void, CommandFailed, Process> =>
  Effect.gen(function*() {
    const { console, env } = yield* Process
    const { force, json, print, yes } = line
    const place = given ?? thisPlace(env)
    const host: Host = hosts[line.host]
    const isProject = line.project || host.userFile === undefined
    const file = (isProject ? host.projectFile! : host.userFile!)(place)
    const server = yield* serverOf(line, place, isProject)
    const entry = host.entry(server)
    if (entry === undefined) return yield* failed(2, noUrls)
    const name = line.name ?? (yield* entryName(line, server, place, console))
    const report = (isWritten: boolean, text: string) =>
      console.print(
        json ? JSON.stringify({ host: line.host, file, name, entry, isWritten }, undefined, 2) : text
      )
    if (print) {
      const { format, member } = host
      console.warn(sanitize(`The entry for ${file}:`))
      return yield* report(
        false,
        format === "toml"
          ? tomlEntry(member, name, entry)
          : JSON.stringify({ [member]: { [name]: entry } }, undefined, 2)
      )
    }
    const { after, before } = yield* edit(file, host, name, entry)
    if (after === before) return yield* report(false, `${host.title} has this entry already: ${file}`)
    const changes = colorChanges(sanitize(changedLines(before, after)), console.colors?.err ?? plain)
    console.warn(`${sanitize(file)}\n${changes}`)
    if (isProject && Object.keys(server._tag === "Url" ? server.headers : server.env).length > 0) {
      console.warn("The file of a project is often committed: it has the values of variables and headers in plain text")
    }
    const other = otherServer(presentEntry(before, host.member, name), entry)
    if (other !== undefined && yes && !force) {
      return yield* failed(
        1,
        `${host.title} has a server ${name} already, which is another one: ${other}. Nothing was written: add this one with ` +
          "--name <name>, or replace the other with --force"
      )
    }
    const question = other === undefined || force
      ? "Write this?"
      : `This replaces another server with the name ${name}: ${other}. Write this?`
    if (!yes && !(yield* confirm(question))) return yield* failed(1, "Nothing was written")
    // The host or the person can have changed the file while the question was open.
    const now = yield* edit(file, host, name, entry)
    if (now.before !== before) return yield* failed(3, `${file} has changed meanwhile. Nothing was written`)
    yield* Effect.mapError(replaceText(file, after), ({ message }) => failed(3, message))
    yield* report(true, `Installed ${name} in ${host.title}: ${file}`)
    console.warn(host.next)
  })
