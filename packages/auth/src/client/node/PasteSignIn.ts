/**
 * Signs a person in without a browser on this computer: the person opens the sign-in page anywhere, and pastes the
 * address that their browser was redirected to.
 *
 * **When to use.** In a shell of another computer (SSH) or of a container. Nothing listens at the redirect URI, so the
 * browser shows an error page; its address is the answer.
 *
 * It writes to stderr and reads from stdin, and only if stdin is a terminal. A stdio server cannot use it: provide a
 * `terminal` of your own there.
 *
 * **Gotchas.** The address contains a code, which is worth nothing without the secret that this process has (PKCE).
 * Still, a person should paste it only where they started the sign-in themselves.
 *
 * @example
 * const program = Effect.provide(main, [PasteSignIn.layer(), FileTokenStore.layer({ app: "teahouse" })])
 */
import { printable, quote } from "@skein/protocol/Text"
import * as Awaitable from "@skein/runtime/Awaitable"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createInterface } from "node:readline"
import { SignInBounds, withinTimeout } from "./bounds.ts"
import { check } from "./browser.ts"
import { parse, type Wanted } from "./pastedAnswer.ts"
import { isRegistered, parseLoopback } from "../protocol/redirectUri.ts"
import { type OpenOptions, SignIn, SignInError } from "../grants/SignIn.ts"

/** A terminal with a person who reads and types. Its functions return effects, promises or values. */
export interface Terminal {
  /** Writes a line, without the line break at its end. */
  readonly writeLine: (line: string) => Awaitable.Awaitable<void>
  /**
   * Shows the prompt and returns the line that was typed, or `undefined` when the input has ended. The signal aborts when
   * the sign-in has ended before the person typed.
   */
  readonly readLine: (prompt: string, signal: AbortSignal) => Awaitable.Awaitable<string | undefined, SignInError>
}

/** The options of `layer` and `make`. */
export interface Options {
  /**
   * The redirect URI. By default one that the client is registered with, else `http://127.0.0.1:49817/callback`.
   * Nothing needs to listen there.
   */
  readonly redirectUri?: string | undefined
  /**
   * The time that the person has: 5 minutes by default. Then the sign-in fails with `SignInError`. Raise it for sign-ins
   * that need an approval. A connection that needs the sign-in waits for at most 15 minutes.
   */
  readonly signInTimeout?: Duration.Input | undefined
  /** The terminal to ask on. The one of this process by default: stdin and stderr. */
  readonly terminal?: Terminal | undefined
}

/**
 * Shows the prompt on stderr and returns the line that was typed, or `undefined` when the input has ended. stdin must be a
 * terminal.
 *
 * @example
 * const answer = yield* PasteSignIn.readLine("Address: ")
 */
export const readLine = (prompt: string): Effect.Effect<string | undefined> =>
  Effect.callback((resume) => {
    const lines = createInterface({ input: process.stdin, output: process.stderr })
    let answer: string | undefined
    // The terminal sends no signal while a line is edited.
    lines.on("SIGINT", () => void process.kill(process.pid, "SIGINT"))
    lines.question(prompt, (line) => {
      answer = line
      lines.close()
    })
    // Closing releases stdin, which must happen before the next prompt.
    lines.on("close", () => resume(Effect.succeed(answer)))
    return Effect.sync(() => lines.close())
  })

/** The terminal of this process. Reading fails if stdin is not a terminal: it can carry messages of a protocol. */
const ofProcess: Terminal = {
  writeLine: (line) => Effect.sync(() => void process.stderr.write(`${line}\n`)),
  readLine: (prompt) =>
    Effect.suspend(() => {
      if (process.stdin.isTTY) return readLine(prompt)
      const message =
        "There is no terminal to paste the answer of a sign-in on: stdin is not a terminal. Sign in with " +
        "another program that shares the token store, or use Loopback."
      return Effect.fail(new SignInError({ message }))
    })
}

const defaultRedirectUri = "http://127.0.0.1:49817/callback"

const redirectUriOf = (
  { redirectUri }: Options,
  { fixed, redirectUris }: OpenOptions
): Effect.Effect<string, SignInError> => {
  // Of several, one that leads to this person's own computer.
  const known = redirectUris.find((uri) => parseLoopback(uri) !== undefined) ?? redirectUris[0]
  if (redirectUri === undefined) return Effect.succeed(known ?? defaultRedirectUri)
  if (!fixed || known === undefined || isRegistered(redirectUri, redirectUris)) return Effect.succeed(redirectUri)
  const message = `The client is not registered with the redirectUri ${quote(redirectUri)}, but with ` +
    redirectUris.map((uri) => quote(uri)).join(", ")
  return Effect.fail(new SignInError({ message }))
}

const terminalFailed = (cause: unknown): SignInError =>
  cause instanceof SignInError
    ? cause
    : new SignInError({ message: "The terminal for the answer of the sign-in failed.", cause })

const write = ({ writeLine }: Terminal, line: string): Effect.Effect<void, SignInError> =>
  Effect.mapError(Awaitable.call<void, unknown>(() => writeLine(line)), terminalFailed)

const read = ({ readLine }: Terminal): Effect.Effect<string | undefined, SignInError> =>
  Effect.suspend(() => {
    const controller = new AbortController()
    return Awaitable.call<string | undefined, unknown>(() => readLine("Address: ", controller.signal)).pipe(
      Effect.mapError(terminalFailed),
      Effect.onInterrupt(() => Effect.sync(() => controller.abort()))
    )
  })

/** Asks until the person pastes the answer. */
const ask = (terminal: Terminal, wanted: Wanted) =>
  Effect.gen(function*() {
    const { maxPastes } = yield* SignInBounds
    for (let pastes = 0; pastes < maxPastes; pastes++) {
      const text = yield* read(terminal)
      if (text === undefined) {
        return yield* new SignInError({ message: "The input ended before the answer of the sign-in was pasted." })
      }
      const answer = parse(text, wanted)
      if (typeof answer !== "string") return answer
      yield* write(terminal, answer)
    }
    const message = `The answer of the sign-in was not among ${maxPastes} pasted texts. Start again.`
    return yield* new SignInError({ message })
  })

/**
 * Makes the service. Use {@link layer} unless you combine several.
 *
 * @example
 * const signIn = PasteSignIn.make({ signInTimeout: "10 minutes" })
 */
export const make = (options: Options = {}): SignIn["Service"] => ({
  applicationType: "native",
  open: (opening) =>
    Effect.map(redirectUriOf(options, opening), (redirectUri) => {
      const terminal = options.terminal ?? ofProcess
      const resource = printable(opening.resource, 512)
      return {
        redirectUri,
        authorize: Effect.fnUntraced(function*(url, state) {
          yield* check(url)
          yield* write(
            terminal,
            `To sign in at ${resource}, open this URL in a browser on any computer:\n\n  ${url.href}\n\n` +
              `After the sign-in the browser goes to an address that begins with ${redirectUri} and may report that ` +
              "the page cannot be reached. Copy the whole address from the browser and paste it here."
          )
          return yield* withinTimeout(
            ask(terminal, { url, redirectUri, state }),
            options,
            `The answer of the sign-in at ${resource} was not pasted`
          )
        })
      }
    })
})

/**
 * Provides `SignIn` with a terminal to paste the answer on.
 *
 * @example
 * const program = Effect.provide(main, PasteSignIn.layer({ signInTimeout: "10 minutes" }))
 */
export const layer = (options?: Options): Layer.Layer<SignIn> => Layer.sync(SignIn, () => make(options))
