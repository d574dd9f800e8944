/**
 * Runs `login`, `logout` and `whoami`.
 */
import type { SignInState } from "@skein/auth/OAuth"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { quoteLine, sanitize } from "../base/format.ts"
import { tokenFolder, usedTokenFolder } from "../base/nodeProcess.ts"
import { CommandFailed, failed, logLine, Process } from "../base/process.ts"
import {
  inStore,
  interactive,
  loadLogin,
  loginKey,
  makeOAuth,
  namedBy,
  oauthFailed,
  openStore,
  placeOf,
  saveLogin,
  storedSignIn
} from "./signIn.ts"
import type { SignInOptions } from "./signInOptions.ts"

/** A parsed command line of `logout` or `whoami`. */
export interface AccountLine {
  readonly url: URL
  readonly json: boolean
}

/** A parsed command line of `login`. */
export interface LoginLine extends AccountLine, SignInOptions {}

/** Runs a command, with the warnings of the client on stderr. */
const command = Effect.fnUntraced(function*<A, R>(effect: Effect.Effect<A, CommandFailed, R>) {
  const { console } = yield* Process
  const logger = Logger.make<unknown, void>(({ message }) => console.warn(`skein: ${sanitize(logLine(message))}`))
  return yield* Effect.scoped(effect).pipe(
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "Warn")
  )
})

const units = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]] as const

/** A duration in its largest unit. */
const about = (millis: number): string => {
  const seconds = Math.max(0, Math.round(millis / 1_000))
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? units.at(-1)!
  const count = Math.floor(seconds / size)
  return `${count} ${unit}${count === 1 ? "" : "s"}`
}

const registrations = {
  given: "registered by hand",
  document: "by its metadata document",
  dynamic: "registered automatically"
}

const isExpired = ({ expiresAt, isRenewable }: SignInState, now: number): boolean =>
  !isRenewable && expiresAt !== undefined && expiresAt <= now

const expiry = ({ expiresAt, isRenewable }: SignInState, now: number): string => {
  const then = isRenewable ? "renewed automatically" : "then you have to sign in again"
  if (expiresAt === undefined) return isRenewable ? then : "not announced by the issuer"
  const time = new Date(expiresAt).toISOString().replace(/\.\d+Z$/, "Z")
  if (expiresAt > now) return `${time}, in ${about(expiresAt - now)}, ${then}`
  return `${time}, ${about(now - expiresAt)} ago${isRenewable ? `, ${then}` : ""}`
}

const whoIs = (person: SignInState["person"]): string => {
  if (person === undefined) return "not known (the issuer may return it for the scope openid)"
  const { name, subject } = person
  return name === undefined || name === subject ? subject : `${name} (${subject})`
}

/** A sign-in for a person. */
export const describe = (url: URL, state: SignInState, now: number): string => {
  const { clientId, issuer, person, registration, scopes } = state
  const rows = [
    ["Issuer", issuer],
    ["Person", whoIs(person)],
    ["Scopes", scopes.length === 0 ? "none" : scopes.join(" ")],
    ["Expires", expiry(state, now)],
    ["Client", `${clientId} (${registrations[registration]})`]
  ]
  return [
    isExpired(state, now) ? `The sign-in at ${placeOf(url)} has expired` : `Signed in at ${placeOf(url)}`,
    ...rows.map(([name, value]) => `  ${name!.padEnd(9)}${quoteLine(value!)}`)
  ].join("\n")
}

const asJson = (url: URL, state: SignInState | undefined, now: number): string => {
  if (state === undefined) return JSON.stringify({ url: placeOf(url), isSignedIn: false }, undefined, 2)
  const { clientId, expiresAt, isRenewable, issuer, person = null, registration, scopes } = state
  const expires = expiresAt === undefined ? null : new Date(expiresAt).toISOString()
  const isSignedIn = !isExpired(state, now)
  const about = {
    url: placeOf(url),
    isSignedIn,
    issuer,
    person,
    scopes,
    expiresAt: expires,
    isRenewable,
    clientId,
    registration
  }
  return JSON.stringify(about, undefined, 2)
}

// How long a sign-in waits for another one at the same server: as long as a person may take, and some seconds.
const lockTimeout = "6 minutes"

/** Signs in. The person is asked in any case, unless another process signed in here since this one was started. */
export const login = (line: LoginLine): Effect.Effect<void, CommandFailed, Process> =>
  command(Effect.gen(function*() {
    const process = yield* Process
    const { json, url } = line
    const signIn = yield* interactive(line, process)
    const store = yield* openStore(yield* tokenFolder)
    const named = namedBy(line, process)
    const signedIn = Effect.gen(function*() {
      const last = yield* inStore(loadLogin(store, url))
      if (last !== undefined && last.at >= performance.timeOrigin) return
      const oauth = yield* makeOAuth(url, store, signIn, named, line)
      yield* Effect.mapError(oauth.signIn(url), oauthFailed)
      yield* inStore(saveLogin(store, url, named))
    })
    yield* Effect.catchTag(
      store.withLock(loginKey(url), signedIn, { lockTimeout }),
      "TokenStoreError",
      (error) => inStore(Effect.fail(error))
    )
    const { state } = yield* storedSignIn(url, store)
    if (state === undefined) return yield* failed(3, "The tokens were not stored")
    const now = yield* Clock.currentTimeMillis
    yield* process.console.print(json ? asJson(url, state, now) : describe(url, state, now))
  }))

/** Shows the stored sign-in. */
export const whoami = ({ json, url }: AccountLine): Effect.Effect<void, CommandFailed, Process> =>
  command(Effect.gen(function*() {
    const { console } = yield* Process
    const folder = yield* usedTokenFolder
    const state = folder === undefined ? undefined : (yield* storedSignIn(url, yield* openStore(folder))).state
    const now = yield* Clock.currentTimeMillis
    const advice = `Sign in with: skein login ${placeOf(url)}`
    if (json) yield* console.print(asJson(url, state, now))
    else if (state !== undefined) yield* console.print(describe(url, state, now))
    if (state !== undefined && !isExpired(state, now)) return
    if (json) return yield* new CommandFailed({ exitCode: 1 })
    const report = state === undefined ? `Not signed in at ${placeOf(url)}. ${advice}` : advice
    return yield* failed(1, report)
  }))

/** Revokes and deletes the tokens. */
export const logout = ({ json, url }: AccountLine): Effect.Effect<void, CommandFailed, Process> =>
  command(Effect.gen(function*() {
    const { console } = yield* Process
    const folder = yield* usedTokenFolder
    const signedOut = folder === undefined ? false : yield* Effect.gen(function*() {
      const store = yield* openStore(folder)
      const { oauth, state } = yield* storedSignIn(url, store)
      yield* Effect.mapError(oauth.signOut(url), oauthFailed)
      yield* inStore(store.remove(loginKey(url)))
      return state !== undefined
    })
    const text = signedOut ? `Signed out of ${placeOf(url)}` : `Nobody was signed in at ${placeOf(url)}`
    yield* console.print(json ? JSON.stringify({ url: placeOf(url), wasSignedIn: signedOut }, undefined, 2) : text)
  }))
