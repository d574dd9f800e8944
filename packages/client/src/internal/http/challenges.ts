/**
 * Reports refused requests to credentials. A report may take minutes, while a person signs in. So it runs outside of
 * the request that was refused, and goes on when that request is cancelled. Requests and connections that are refused in
 * the same way meanwhile wait for it, so that the person is asked once.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { Challenge, Credentials } from "../../Credentials.ts"
import { notDelivered } from "../base/errors.ts"
import type { Resolved } from "./settings.ts"

/** Whether the request is sent again; if not, the failure of the credentials, if they failed. */
export interface Outcome {
  readonly isRenewed: boolean
  readonly failure?: { readonly cause: unknown } | undefined
}

/** A connection whose requests wait for a report. */
export interface ReportOwner {
  readonly settings: Pick<Resolved, "credentialsTimeout" | "url">
  /** Runs an effect with the services of the connection, but not in its scope. */
  readonly runDetached: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>
  /** Called when the credentials were renewed. */
  readonly renewed: () => void
}

/** A report in progress. */
interface Report {
  readonly status: number
  readonly wwwAuthenticate: string | undefined
  readonly owners: Set<ReportOwner>
  fiber: Fiber.Fiber<Outcome>
}

const renewed: Outcome = { isRenewed: true }
const refused: Outcome = { isRenewed: false }

// The reports in progress, by their credentials and by the URL of the server. There is one at a time for each.
const inProgress = new WeakMap<Credentials["Service"], Map<string, Report>>()

const start = (owner: ReportOwner, credentials: Credentials["Service"], challenge: Challenge): Report => {
  const { credentialsTimeout, url } = owner.settings
  const { status, wwwAuthenticate } = challenge
  const reports = inProgress.get(credentials) ?? new Map<string, Report>()
  inProgress.set(credentials, reports)
  const report: Report = { status, wwwAuthenticate, owners: new Set([owner]), fiber: undefined! }
  reports.set(url.href, report)
  const asked = Effect.suspend(() => credentials.refused(challenge)).pipe(
    Effect.timeoutOrElse({
      duration: credentialsTimeout,
      orElse: () =>
        Effect.fail(notDelivered(
          `The credentials did not handle a refused request within ${credentialsTimeout} ms`
        ))
    })
  )
  report.fiber = owner.runDetached(Effect.onExitPrimitive(
    Effect.matchCause(asked, {
      onFailure: (cause): Outcome =>
        Cause.hasInterruptsOnly(cause) ? refused : { isRenewed: false, failure: { cause: Cause.squash(cause) } },
      onSuccess: (again) => again ? renewed : refused
    }),
    (exit) => {
      if (reports.get(url.href) === report) reports.delete(url.href)
      if (Exit.isSuccess(exit) && exit.value.isRenewed) { for (const one of report.owners) one.renewed() }
      return undefined
    }
  ))
  return report
}

const outcomeOf = (exit: Exit.Exit<Outcome>): Outcome => Exit.isSuccess(exit) ? exit.value : refused

/**
 * Reports a refused request, or waits for the same report if it is in progress. `isStale` returns whether the
 * credentials were renewed since the request was sent: then there is no report.
 */
export const report = (
  owner: ReportOwner,
  credentials: Credentials["Service"],
  challenge: Challenge,
  isStale: () => boolean
): Effect.Effect<Outcome> =>
  Effect.suspend(() => {
    if (isStale()) return Effect.succeed(renewed)
    const running = inProgress.get(credentials)?.get(owner.settings.url.href)
    if (running === undefined) {
      return Effect.map(Fiber.await(start(owner, credentials, challenge).fiber), outcomeOf)
    }
    running.owners.add(owner)
    const ended = Fiber.await(running.fiber)
    return running.status === challenge.status && running.wwwAuthenticate === challenge.wwwAuthenticate
      ? Effect.map(ended, outcomeOf)
      : Effect.andThen(ended, report(owner, credentials, challenge, isStale))
  })

/**
 * A connection has ended. If this side has closed it, and no other connection waits for the report, the report is
 * interrupted. After a lost connection it goes on, since the next connection waits for it.
 */
export const release = (owner: ReportOwner, credentials: Credentials["Service"], isClosedByUs: boolean): void => {
  const running = inProgress.get(credentials)?.get(owner.settings.url.href)
  if (running === undefined || !running.owners.delete(owner)) return
  if (isClosedByUs && running.owners.size === 0) running.fiber.interruptUnsafe()
}
