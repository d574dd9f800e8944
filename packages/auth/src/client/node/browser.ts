/**
 * Opens a URL in the browser of the person at this computer.
 *
 * The URL comes from an authorization server, so it is never part of a command line that a shell reads, and only `http`
 * and `https` URLs are opened: other schemes start other programs (CVE-2025-6514).
 */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { delimiter } from "node:path"
import { SignInError } from "../grants/SignIn.ts"

type Env = Readonly<Record<string, string | undefined>>

/** A program and its arguments. */
export type Command = readonly [program: string, ...args: ReadonlyArray<string>]

/** The longest URL that is opened, in characters: a program on Windows takes no more than 32,767. */
const maxUrlLength = 16_384

/** Fails if the URL must not be opened. */
export const check = (url: URL): Effect.Effect<void, SignInError> => {
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    const message = `The sign-in page has the scheme ${url.protocol} Only http and https URLs are opened.`
    return Effect.fail(new SignInError({ message }))
  }
  return url.href.length <= maxUrlLength ? Effect.void : Effect.fail(
    new SignInError({
      message: `The URL of the sign-in page at ${url.host} has ${url.href.length} characters; ` +
        `at most ${maxUrlLength} are opened.`
    })
  )
}

/** The commands of the variable `BROWSER`: a list like `PATH`, with the URL in the place of `%s`, or at the end. */
const fromVariable = (variable: string, url: string): ReadonlyArray<Command> =>
  variable.split(delimiter).flatMap((entry) => {
    const [program, ...args] = entry.trim().split(/\s+/)
    if (program === undefined || program === "") return []
    const placed = args.map((word) => word.replaceAll("%s", () => url))
    return [[program, ...placed, ...args.some((word) => word.includes("%s")) ? [] : [url]]]
  })

/**
 * The commands to try, one after the other. Empty if there is no browser: `BROWSER=none`, or no display on Linux, where
 * `xdg-open` would start a browser in the terminal.
 *
 * `BROWSER` comes first on each system: development containers and remote shells set it to a program that opens the
 * page on the computer of the person. The programs of macOS and Windows are named by their paths, since Windows would
 * start a program of that name in the current directory.
 */
export const commands = (url: string, env: Env, platform: NodeJS.Platform): ReadonlyArray<Command> => {
  const variable = env["BROWSER"]?.trim() ?? ""
  if (variable === "none") return []
  const given = fromVariable(variable, url)
  if (platform === "darwin") return [...given, ["/usr/bin/open", url]]
  if (platform === "win32") {
    const root = env["SystemRoot"] ?? env["SYSTEMROOT"] ?? "C:\\Windows"
    return [...given, [`${root}\\System32\\rundll32.exe`, "url.dll,FileProtocolHandler", url]]
  }
  const hasDisplay = [env["DISPLAY"], env["WAYLAND_DISPLAY"]].some((display) => (display ?? "") !== "")
  return hasDisplay ? [...given, ["xdg-open", url]] : given
}

const failed = (program: string, cause: unknown): SignInError =>
  new SignInError({ message: `${program} did not start: ${cause instanceof Error ? cause.message : cause}`, cause })

/**
 * Runs a command, and succeeds when it ends with 0. A browser that is a child of this process ends when it is closed.
 * The process outlives this one.
 */
const run = ([program, ...args]: Command): Effect.Effect<void, SignInError> =>
  Effect.callback((resume) => {
    try {
      const child = spawn(program, args, { stdio: "ignore", detached: true, shell: false, windowsHide: true })
      child.once("error", (error) => resume(Effect.fail(failed(program, error))))
      child.once("exit", (code, signal) => {
        const message = `${program} opened no browser: it ended with ${code ?? signal}`
        resume(code === 0 ? Effect.void : Effect.fail(new SignInError({ message })))
      })
      child.unref()
    } catch (cause) {
      // A command that is too long, for example.
      resume(Effect.fail(failed(program, cause)))
    }
  })

/** Opens the URL with the first command that succeeds. */
export const open = (
  url: URL,
  env: Env = process.env,
  platform: NodeJS.Platform = process.platform
): Effect.Effect<void, SignInError> =>
  Effect.andThen(
    check(url),
    Effect.suspend(() => {
      const message = "No browser was opened: this computer has no display, and the variable BROWSER names no program"
      const none: Effect.Effect<void, SignInError> = Effect.fail(new SignInError({ message }))
      return commands(url.href, env, platform).reduce(
        (opened, command) => Effect.catch(opened, () => run(command)),
        none
      )
    })
  )
