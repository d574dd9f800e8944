/**
 * The scripted servers with an authorization server that rotates refresh tokens: each one works once. A second use ends
 * the sign-in, as RFC 9700 (4.14.2) recommends, and is counted, with the process that used it first.
 */
import * as Effect from "effect/Effect"
import { type Answer, type Arrived, start as startServers } from "../../oauth/scriptedServers.ts"

interface SignIn {
  isValid: boolean
}

/** Tokens that a process was given. */
export interface Issued {
  /** The process that asked for them. */
  readonly by: number
  readonly kind: "sign-in" | "refresh"
  /** Whether any process has used one of them. */
  isUsed: boolean
}

export interface Reuse {
  readonly by: number
  /** The tokens that the first use was answered with. */
  readonly first: Issued
}

export interface TokenServer {
  /** The protected server. */
  readonly url: string
  readonly reuses: ReadonlyArray<Reuse>
  readonly issued: ReadonlyArray<Issued>
  /** Requests that the token endpoint cannot account for. */
  readonly faults: ReadonlyArray<string>
  /** Lets all access tokens expire. */
  readonly expire: () => void
  /** The process of the next request to the token endpoint. Its old refresh token is dead, and the answer is on its way. */
  readonly nextTokenRequest: () => Promise<number>
}

/** The header in which a process sends its id. */
export const processHeader = "x-process"

/** Starts the servers until the scope closes. A refresh takes `refreshMillis` after the old token is dead. */
export const start = (refreshMillis: () => number) =>
  Effect.gen(function*() {
    const servers = yield* startServers
    const refreshTokens = new Map<string, { readonly signIn: SignIn; readonly tokens: Issued; next?: Issued }>()
    const accessTokens = new Map<string, Issued>()
    const reuses: Array<Reuse> = []
    const issued: Array<Issued> = []
    const faults: Array<string> = []
    const waiting: Array<(pid: number) => void> = []
    let accepted = new Set<string>()

    const issue = async (by: number, kind: Issued["kind"], signIn: SignIn, before: { next?: Issued } = {}) => {
      const access = crypto.randomUUID()
      const refresh = crypto.randomUUID()
      const tokens: Issued = { by, kind, isUsed: false }
      issued.push(tokens)
      before.next = tokens
      accessTokens.set(access, tokens)
      refreshTokens.set(refresh, { signIn, tokens })
      accepted.add(access)
      for (const resume of waiting.splice(0)) resume(by)
      await new Promise((resolve) => setTimeout(resolve, refreshMillis()))
      return { body: { access_token: access, token_type: "Bearer", refresh_token: refresh, expires_in: 3_600 } }
    }

    const token = async ({ form, headers }: Arrived): Promise<Answer> => {
      const by = Number(headers[processHeader])
      if (form.get("grant_type") !== "refresh_token") return issue(by, "sign-in", { isValid: true })
      const used = refreshTokens.get(form.get("refresh_token")!)
      if (used === undefined) {
        faults.push(`process ${by} used an unknown refresh token`)
        return { status: 400, body: { error: "invalid_grant" } }
      }
      used.tokens.isUsed = true
      if (used.next !== undefined) {
        reuses.push({ by, first: used.next })
        used.signIn.isValid = false
      }
      if (!used.signIn.isValid) return { status: 400, body: { error: "invalid_grant" } }
      return issue(by, "refresh", used.signIn, used)
    }

    const protectedServer = ({ headers }: Arrived): Answer => {
      const access = headers.authorization?.split(" ")[1] ?? ""
      const tokens = accessTokens.get(access)
      if (tokens !== undefined) tokens.isUsed = true
      return accepted.has(access)
        ? { body: { ok: true } }
        : { status: 401, headers: { "www-authenticate": servers.challenge } }
    }

    servers.routes.set("/as/token", token)
    servers.routes.set("/mcp", protectedServer)
    return {
      url: servers.url.href,
      reuses,
      issued,
      faults,
      expire: () => {
        accepted = new Set()
      },
      nextTokenRequest: () => new Promise((resolve) => void waiting.push(resolve))
    } satisfies TokenServer
  })
