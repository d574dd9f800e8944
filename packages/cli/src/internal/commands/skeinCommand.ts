/**
 * The program `skein` and its commands. A further command is one more entry of {@link skeinCommand}.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { callCommand } from "./callCommand.ts"
import { handledBy, invalid, isUrl, rewrite, toggle, withScheme } from "./commandLine.ts"
import { buildCommand, conformanceCommand, devCommand, publishCommand, runModuleCommand } from "./developCommands.ts"
import { describe, HelpText } from "./help.ts"
import { gatewayCommand } from "./gatewayCommand.ts"
import { installCommand } from "./installCommand.ts"
import {
  completeCommand,
  generateCommand,
  inspectCommand,
  logsCommand,
  pingCommand,
  promptCommand,
  readCommand,
  subscribeCommand
} from "./serverCommands.ts"
import { headerFlag } from "./serverOptions.ts"
import { tasksCommand } from "./tasksCommand.ts"
import { checkSignIn, signInFlags } from "./signInFlags.ts"

const urlOf = (description: string) =>
  Argument.String("url").pipe(
    Argument.withDescription(description),
    Argument.mapEffect((text) => {
      if (!isUrl(text) || !URL.canParse(text)) {
        const meant = /^[\w.-]+(:\d+)?\/|^[\w.-]+\.\w+(:\d+)?$/.test(text) ? `; did you mean ${withScheme(text)}?` : ""
        return invalid(`<url> must be the http or https URL of an MCP server: ${JSON.stringify(text)}${meant}`)
      }
      const url = new URL(text)
      return url.username === "" && url.password === ""
        ? Effect.succeed(url)
        : invalid("<url> must not contain a user name and a password")
    })
  )

const url = urlOf("The URL of the MCP server")

const json = toggle("json", "Print the result as JSON")

const store = "Tokens are stored in files that only you can read, and skein call uses them."

const load = () => import("../accounts/accounts.ts")

/** `skein login`. */
export const loginCommand = Command.make("login", { url, ...signInFlags, json }).pipe(
  describe({
    short: "Sign in to an MCP server",
    description: "Signs in to an MCP server with the browser, and stores the tokens for skein call.",
    usage: ["[options] <url>"],
    footer:
      `${store} In a shell without a browser (SSH, a container) the URL is printed, and you paste the address that ` +
      "your browser goes to after the sign-in. Exit codes: 0 signed in, 2 invalid command line, 3 no sign-in or a " +
      "server was not reached, 4 a server refused, 130 interrupted."
  }),
  Command.validate((line) => checkSignIn(line)),
  handledBy(load, ({ login }, line) => login(line))
)

/** `skein logout`. */
export const logoutCommand = Command.make("logout", { url, json }).pipe(
  describe({
    short: "Sign out: revoke the tokens for a server and delete them",
    description:
      "Revokes the tokens for an MCP server, where its authorization server supports that, and deletes them.",
    usage: ["[options] <url>"],
    footer: "Exit codes: 0 signed out, or not signed in before; 2 invalid command line, 3 the store could not be used."
  }),
  handledBy(load, ({ logout }, line) => logout(line))
)

/** `skein whoami`. */
export const whoamiCommand = Command.make("whoami", { url, json }).pipe(
  describe({
    short: "Show the sign-in at a server: issuer, person, scopes, expiry",
    description: "Shows the sign-in at an MCP server: its issuer, its scopes, and when it expires. Never a token.",
    usage: ["[options] <url>"],
    footer:
      "Nothing is sent to a server. The person is shown if the issuer has returned it, as most do for the scope openid. " +
      "Exit codes: 0 signed in, 1 not signed in or expired, 2 invalid command line, " +
      "3 the store could not be used."
  }),
  handledBy(load, ({ whoami }, line) => whoami(line))
)

/** `skein top`. */
const topCommand = Command.make("top", {
  url: urlOf("The URL of the console of a server: http://127.0.0.1:3001/ by default").pipe(
    Argument.withDefault(new URL("http://127.0.0.1:3001/"))
  ),
  headers: headerFlag,
  once: toggle("once", "Print the tree once, as it is when the output is not a terminal"),
  json: toggle("json", "Print the tree once, as JSON")
}).pipe(
  describe({
    short: "Show the sessions, requests and tasks of a running server, and interrupt them",
    description:
      "Shows the sessions, requests, tasks and streams of a server with a console (@skein/console), with what each " +
      "waits for. Requests can be interrupted, and sessions closed.",
    usage: ["[options] [url]"],
    footer:
      "Keys: the arrows move, collapse and expand; x interrupts after a confirmation, / filters, i hides idle sessions, " +
      "q quits. SKEIN_CONSOLE_PASSWORD is the password of the console, if it has one. " +
      "Exit codes: 0 done, 2 invalid command line, 3 the console was not reached, 4 it refuses, 130 interrupted."
  }),
  handledBy(() => import("../top/top.ts"), ({ top }, line) => top(line))
)

export const skeinCommand = Command.make("skein").pipe(
  Command.withDescription(
    "Inspects, calls and installs MCP servers, signs in to them, and operates servers and their tasks, from a shell."
  ),
  Command.annotate(HelpText, {
    usage: ["<command> [options]"],
    footer: "skein <command> --help describes a command."
  }),
  Command.withSubcommands([
    callCommand("call"),
    inspectCommand,
    readCommand,
    promptCommand,
    completeCommand,
    pingCommand,
    logsCommand,
    subscribeCommand,
    generateCommand,
    installCommand,
    loginCommand,
    logoutCommand,
    whoamiCommand,
    topCommand,
    tasksCommand,
    runModuleCommand,
    gatewayCommand,
    devCommand,
    buildCommand,
    publishCommand,
    conformanceCommand
  ])
)

/** Rewrites the arguments of the process for `effect/cli`: those of some commands contain the words of a server. */
export const skeinArguments = ([name, ...rest]: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (name === undefined) return []
  const command = skeinCommand.subcommands.flatMap(({ commands }) => commands).find((each) => each.name === name)
  return [name, ...command === undefined ? rest : rewrite(command, rest)]
}
