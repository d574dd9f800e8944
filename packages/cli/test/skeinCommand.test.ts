import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { AccountLine, LoginLine } from "../src/internal/accounts/accounts.ts"
import type { Invocation } from "../src/internal/calls/call.ts"
import { callCommand } from "../src/internal/commands/callCommand.ts"
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { hostNames } from "../src/internal/install/hosts.ts"
import { Process, version } from "../src/internal/base/process.ts"
import { programFlags, runCommand } from "../src/internal/commands/runCommand.ts"
import { serverInvocationOf } from "../src/internal/commands/serverOptions.ts"
import {
  loginCommand,
  logoutCommand,
  skeinArguments,
  skeinCommand,
  whoamiCommand
} from "../src/internal/commands/skeinCommand.ts"

/** Runs the command line with handlers that record it. */
const run = (...argv: ReadonlyArray<string>) => {
  let line: LoginLine | AccountLine | Invocation | undefined
  let [out, err] = ["", ""]
  const record = (parsed: LoginLine | AccountLine | Invocation) => Effect.sync(() => void (line = parsed))
  const recording = Command.make("skein").pipe(Command.withSubcommands([
    Command.withHandler(callCommand("call"), (parsed) => record(serverInvocationOf(parsed))),
    Command.withHandler(loginCommand, record),
    Command.withHandler(logoutCommand, record),
    Command.withHandler(whoamiCommand, record)
  ]))
  const process = {
    env: {},
    console: {
      print: (text: string) => Effect.sync(() => void (out += text)),
      warn: (text: string) => void (err += `${text}\n`)
    },
    terminal: undefined
  }
  const code = Effect.runSync(Effect.provideService(runCommand(recording, skeinArguments(argv)), Process, process))
  return { code, err, line, out }
}

const parsed = (...argv: ReadonlyArray<string>): LoginLine => {
  const { code, err, line } = run(...argv)
  assert.deepStrictEqual([code, err], [0, ""])
  return line as LoginLine
}

/** The message about a command line that is not valid. */
const wrong = (...argv: ReadonlyArray<string>): string => {
  const { code, err, line, out } = run(...argv)
  assert.deepStrictEqual([code, line, out], [2, undefined, ""])
  return /^skein: ([^]*?)\n\n/.exec(err)?.[1] ?? assert.fail(err)
}

const url = "https://tea.example/mcp"
const none = {
  assumePkce: false,
  clientId: undefined,
  issuer: undefined,
  noBrowser: false,
  omitResource: false,
  paste: false,
  port: undefined,
  redirectUri: undefined,
  resourceMetadata: undefined,
  scopes: undefined
}

/** The output of a command line with `--help`. */
const help = (...argv: ReadonlyArray<string>): string => {
  let out = ""
  const process = {
    env: {},
    console: {
      print: (text: string) => Effect.sync(() => void (out += text)),
      warn: (text: string) => assert.fail(text)
    },
    terminal: undefined
  }
  const shown = runCommand(skeinCommand, skeinArguments(argv))
  assert.strictEqual(Effect.runSync(Effect.provideService(shown, Process, process)), 0)
  for (const line of out.split("\n")) assert.isAtMost(line.length, 120)
  return out
}

describe("the command line of skein", () => {
  it("takes the URL of a server, before or after the options", () => {
    for (const command of ["login", "logout", "whoami"]) {
      for (const argv of [[command, url, "--json"], [command, "--json", url]]) {
        const { json, url: to } = parsed(...argv)
        assert.deepStrictEqual([json, to.href], [true, url])
      }
      assert.isFalse(parsed(command, url).json)
    }
  })

  it("takes the options for a server that departs from the specification", () => {
    const { assumePkce, omitResource } = parsed("login", "--omit-resource", url, "--assume-pkce")
    assert.deepStrictEqual([assumePkce, omitResource], [true, true])
    const { line } = run("call", "--login", "--assume-pkce", url, "brew")
    assert.deepInclude((line as Invocation).signIn, { assumePkce: true, omitResource: false })
    assert.match(wrong("call", "--omit-resource", url, "brew"), /--login/)
  })

  it("takes the options of a sign-in", () => {
    const { json: _, url: __, ...options } = parsed("login", url)
    assert.deepStrictEqual(options, none)
    const client = ["--client-id", "tea", "--issuer", "https://login.example", "--redirect-uri", "http://localhost/cb"]
    const { clientId, issuer, port, redirectUri, scopes } = parsed(
      "login",
      ...client,
      "--scope",
      "a  b:c",
      "--port=80",
      url
    )
    assert.deepStrictEqual([clientId, issuer, redirectUri, scopes, port], [
      "tea",
      "https://login.example",
      "http://localhost/cb",
      ["a", "b:c"],
      80
    ])
    assert.isTrue(parsed("login", url, "--paste").paste)
    assert.isTrue(parsed("login", url, "--no-browser").noBrowser)
  })

  it("takes a call, whose server has words of its own, with --login or without", () => {
    const command = run("call", "--json", "node", "server.js", "--json", "--login", "add", "{\"a\":1}")
      .line as Invocation
    assert.deepStrictEqual(command.target, {
      _tag: "Command",
      command: "node",
      args: ["server.js", "--json", "--login"]
    })
    assert.deepStrictEqual([command.json, command.tool, command.args, command.signIn], [
      true,
      "add",
      { a: 1 },
      undefined
    ])
    const login = run("call", "--login", "--port", "8400", "--scope", "a b", url, "add").line as Invocation
    assert.deepStrictEqual([login.tool, login.signIn], ["add", { ...none, port: 8400, scopes: ["a", "b"] }])
    assert.isUndefined((run("call", url).line as Invocation).signIn)
    const configured = run("call", "--config", "mcp.json", "--login", "--server", "tea", "add").line as Invocation
    assert.deepStrictEqual(configured.signIn, none)
  })

  it("reports what is wrong", () => {
    for (const command of ["login", "logout", "whoami"]) {
      assert.include(wrong(command), "<url> is required")
      for (const bad of ["tea.example", "file:///etc/passwd", "https://", "node server.js"]) {
        assert.include(wrong(command, bad), "must be the http or https URL of an MCP server")
      }
      assert.include(wrong(command, "tea.example"), "; did you mean https://tea.example?")
      assert.include(wrong(command, "localhost:3000/mcp"), "; did you mean http://localhost:3000/mcp?")
      assert.strictEqual(
        run(command).err,
        `skein: <url> is required\n\n  skein ${command} [options] <url>\n\nskein ${command} --help lists the options.\n`
      )
      assert.include(wrong(command, "https://user:planted@tea.example"), "must not contain a user name and a password")
      assert.include(wrong(command, url, "--what"), "Unknown option --what")
    }
    assert.include(wrong("login", "--client-id", "tea", url), "--client-id needs --issuer")
    assert.include(wrong("login", "--issuer", "https://x", url), "--issuer needs --client-id")
    assert.include(wrong("login", "--redirect-uri", "http://x", url), "--redirect-uri needs --client-id")
    assert.include(wrong("login", "--paste", "--no-browser", url), "exclude each other")
    assert.include(wrong("login", "--paste", "--port", "80", url), "--port cannot be used with --paste")
    for (const port of ["0", "65536", "-1", "x", "1.5", ""]) {
      assert.include(wrong("login", `--port=${port}`, url), "--port")
    }
    for (const scope of ["", " ", "a\"b", "ä", "a\nb"]) assert.include(wrong("login", "--scope", scope, url), "--scope")
    assert.include(wrong("call", "--paste", url), "need --login")
    assert.include(wrong("call", "--login", "node", "server.js"), "--login needs a server with a URL")
    assert.include(wrong("call", "--login", "--header", "authorization: x", url), "cannot be used with --header")
    assert.include(wrong("call", "--login", "--client-id", "tea", url), "--client-id needs --issuer")
    assert.include(wrong("lgoin", url), "Unknown command lgoin; did you mean login?")
    assert.include(wrong("--what"), "Unknown option --what")
  })

  it("has no option for a secret: arguments are visible to other users", () => {
    assert.include(wrong("login", "--client-secret", "planted", url), "Unknown option --client-secret")
    assert.include(run("login", "--help").out, "SKEIN_CLIENT_SECRET")
  })

  /** Prints the completions of a shell. */
  const completionsOf = (shell: string) => {
    const printed: Array<unknown> = []
    const messages: Array<string> = []
    const process = { env: {}, console: { print: () => Effect.void, warn: (text: string) => void messages.push(text) } }
    const code = Effect.runSync(
      runCommand(skeinCommand, ["--completions", shell], programFlags).pipe(
        Effect.provideService(Process, { ...process, terminal: undefined }),
        Effect.provideService(Console.Console, {
          ...globalThis.console,
          log: (...args: ReadonlyArray<unknown>) => void printed.push(...args)
        })
      )
    )
    return { code, messages, text: String(printed[0]) }
  }

  it("prints the completions of a shell, and refuses another one", () => {
    for (const shell of ["bash", "zsh", "fish", "powershell"]) {
      const { code, text } = completionsOf(shell)
      assert.strictEqual(code, 0)
      for (const word of ["inspect", "install", "--answers", "revision"]) assert.include(text, word.replace(/^--/, ""))
    }
    const { code, messages } = completionsOf("tcsh")
    assert.strictEqual(code, 2)
    assert.include(messages[0], "\"tcsh\"")
  })

  it("suggests the values of an option in the script of each shell", () => {
    for (const values of [hostNames, Revision.all, ["debug", "info", "notice"], ["working", "input_required"]]) {
      // fish quotes the names of the values twice.
      const list = (separator: string, quote = "") => values.map((value) => `${quote}${value}${quote}`).join(separator)
      assert.include(completionsOf("bash").text, list(" ", "'"))
      assert.include(completionsOf("zsh").text, `:value:(${list(" ")}`)
      assert.include(completionsOf("fish").text, `-r -f -a '${list(" ")}`)
      assert.include(completionsOf("powershell").text, list(", ", "'"))
    }
  })

  it("suggests the values of an option in bash", () => {
    const suggestions = (...words: ReadonlyArray<string>): ReadonlyArray<string> => {
      const line = words.join(" ")
      const script = [
        completionsOf("bash").text,
        `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})`,
        `COMP_CWORD=${words.length - 1} COMP_LINE='${line}' COMP_POINT=${line.length}`,
        `_skein skein '${words.at(-1)}' '${words.at(-2)}'`,
        "printf '%s\\n' \"${COMPREPLY[@]}\""
      ].join("\n")
      const { status, stderr, stdout } = spawnSync("bash", ["--norc", "-c", script], { encoding: "utf8" })
      assert.deepStrictEqual([status, stderr], [0, ""])
      return stdout.trim().split("\n")
    }
    assert.deepStrictEqual(suggestions("skein", "install", "--host", ""), hostNames)
    assert.deepStrictEqual(suggestions("skein", "install", "--host", "cu"), ["cursor"])
    assert.deepStrictEqual(suggestions("skein", "call", "--revision", "2025"), [
      "2025-03-26",
      "2025-06-18",
      "2025-11-25"
    ])
  })

  it("prints its version", () => {
    for (const argv of [["--version"], ["-v"], ["call", "--version"]]) {
      const { code, err, out } = run(...argv)
      assert.deepStrictEqual([code, err, out], [0, "", version])
    }
    // After the command of a server, it is the server's.
    assert.strictEqual((run("call", "node", "server.js", "--version").line as Invocation).tool, undefined)
    const { version: published } = JSON.parse(readFileSync(join(import.meta.dirname, "../package.json"), "utf8"))
    assert.strictEqual(version, published)
  })

  it("shows the commands, and the help of each one", () => {
    for (const argv of [[], ["--help"], ["-h"]]) {
      const out = help(...argv)
      for (const command of ["call", "inspect", "read", "install", "login", "logout", "whoami"]) {
        assert.match(out, new RegExp(`^  ${command} +[A-Z]`, "m"))
      }
    }
    for (const command of ["login", "logout", "whoami"]) {
      assert.include(help(command, "--help"), `\n\n  skein ${command} [options] <url>\n\n`)
    }
    for (const option of ["client-id", "issuer", "redirect-uri", "scope", "port"]) {
      assert.match(help("login", "--help"), new RegExp(`^  --${option} <`, "m"))
    }
    assert.include(help("call", "--help"), "\n  skein call [options] <url or module> [<tool> [<arguments>]]\n")
  })

  describe("the words of a server", () => {
    const commands = skeinCommand.subcommands.flatMap(({ commands }) => commands.map(({ name }) => name))

    it("are found behind every option of every command that takes the command of a server", () => {
      const rewritten = commands.filter((name) => skeinArguments([name, "x"]).includes("--"))
      assert.deepStrictEqual(
        rewritten,
        commands.filter((name) => help(name, "--help").includes("\"<command and its arguments>\""))
      )
      assert.includeMembers(rewritten, ["call", "inspect", "install", "dev", "conformance", "generate-client"])
      // An option with a value, before and after the server, is one word.
      for (const name of rewritten) {
        const options = [...help(name, "--help").matchAll(/^ {2}--([\w-]+)(?:, -\w)*( \S+)?/gm)]
        assert.isAbove(options.length, 5)
        for (const [, option, value] of options) {
          if (option === "config") continue
          const given = value === undefined ? [`--${option}`] : [`--${option}`, "value"]
          const joined = value === undefined ? `--${option}` : `--${option}=value`
          const expected = [name, joined, "--", "node server.js"]
          assert.deepStrictEqual(skeinArguments([name, ...given, "node server.js"]), expected)
          assert.deepStrictEqual(skeinArguments([name, "node server.js", ...given]), expected)
        }
      }
    })
  })
})
