/** The processor time of one call behind each protection. All of them protect the same handler. */
import * as Protect from "@skein/auth/Protect"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import type * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import { requireBearerAuth } from "@modelcontextprotocol/server"
import * as Effect from "effect/Effect"
import { createRemoteJWKSet, jwtVerify } from "jose"
import { cpuTime } from "../lib/machine.ts"
import { ratios, type Spread } from "../lib/statistics.ts"
import { Issuer, resource } from "./issuer.ts"

/** How much to measure. */
export interface Plan {
  readonly rounds: number
  /** Calls of each protection in a round. */
  readonly calls: number
  readonly warmUp: number
}

/** Samples of all rounds, in microseconds per call. */
export interface Measured {
  readonly name: string
  readonly perCall: ReadonlyArray<number>
  readonly added: ReadonlyArray<number>
  readonly toBase: Spread
}

interface Peer {
  readonly name: string
  /** Makes the headers of a round, before its time is measured. */
  readonly prepare: (calls: number) => Promise<ReadonlyArray<Record<string, string>>>
  readonly handle: (request: Request) => Promise<Response>
  /** Without cryptography a call takes so little time that the garbage of others would be most of it. */
  readonly isCheap?: boolean
}

/** A round has so many times the calls of a cheap peer. */
const cheapFactor = 20

const Server = McpServer.layer(
  { name: "tea", version: "1.0.0" },
  Tool.layer(Tool.make("brew"), () => Effect.succeed("tea"))
)

const body = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "brew",
    arguments: {},
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "benchmark", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {}
    }
  }
})

const requestWith = (headers: Record<string, string>): Request =>
  new Request(resource, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "brew",
      ...headers
    },
    body
  })

const mounted = (protection?: Effect.Effect<Http.Protection>) =>
  WebHttp.mount(Server, { allowedHosts: ["tea.example"], protection }).handler

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const times = <A>(calls: number, make: () => Promise<A>): Promise<ReadonlyArray<A>> =>
  Promise.all(Array.from({ length: calls }, make))

const peersOf = async (issuer: Issuer): Promise<ReadonlyArray<Peer>> => {
  const verify = TokenVerifier.jwt({ issuer: issuer.url, jwksUri: issuer.keys })
  const known = await issuer.token()
  const bound = await issuer.token({ cnf: { jkt: issuer.jkt } })
  const keys = createRemoteJWKSet(new URL(issuer.keys))
  const options = { issuer: issuer.url, audience: resource }
  const none = mounted()
  const protect = mounted(Protect.make({ resource, verify, scopes: ["tea"] }))
  const dpop = mounted(Protect.make({ resource, verify, scopes: ["tea"], dpop: "accept" }))
  const gate = requireBearerAuth({
    requiredScopes: ["tea"],
    expectedResource: new URL(resource),
    verifier: {
      verifyAccessToken: async (token) => {
        const { payload } = await jwtVerify(token, keys, options)
        const { client_id, exp, scope } = payload as { readonly client_id: string; exp: number; scope: string }
        return { token, clientId: client_id, expiresAt: exp, scopes: scope.split(" "), resource: new URL(resource) }
      }
    }
  })
  const sameToken = (calls: number) => times(calls, async () => bearer(known))
  const newTokens = (calls: number) => times(calls, async () => bearer(await issuer.token()))
  return [
    { name: "none", prepare: (calls) => times(calls, async () => ({})), handle: none, isCheap: true },
    { name: "Protect, a known token", prepare: sameToken, handle: protect, isCheap: true },
    { name: "Protect, a new token", prepare: newTokens, handle: protect },
    {
      name: "Protect, a known token with DPoP",
      prepare: (calls) =>
        times(calls, async () => ({ authorization: `DPoP ${bound}`, dpop: await issuer.prove(bound) })),
      handle: dpop
    },
    {
      name: "requireBearerAuth of SDK v2",
      prepare: sameToken,
      handle: async (request) => {
        const auth = await gate(request)
        return auth instanceof Response ? auth : none(request)
      }
    },
    {
      name: "bare jwtVerify of jose",
      prepare: sameToken,
      handle: async (request) => {
        await jwtVerify(request.headers.get("authorization")!.slice(7), keys, options)
        return none(request)
      }
    }
  ]
}

/** Runs the calls of one round, and returns their processor time in microseconds per call. */
const round = async ({ handle, isCheap, name, prepare }: Peer, calls: number): Promise<number> => {
  const repeats = isCheap === true ? cheapFactor : 1
  let total = 0
  for (let n = 0; n < repeats; n++) {
    const requests = (await prepare(calls)).map(requestWith)
    const before = cpuTime()
    for (const request of requests) {
      const response = await handle(request)
      const text = await response.text()
      if (response.status !== 200) throw new Error(`${name}: ${response.status} ${text}`)
    }
    total += cpuTime() - before
  }
  return total * 1_000 / (calls * repeats)
}

/** Measures all protections in interleaved rounds. */
export const measure = async ({ calls, rounds, warmUp }: Plan): Promise<ReadonlyArray<Measured>> => {
  const issuer = await Issuer.start()
  try {
    const peers = await peersOf(issuer)
    const samples = peers.map((): Array<number> => [])
    for (let n = 0; n < warmUp + rounds; n++) {
      for (const [index, peer] of peers.entries()) {
        const perCall = await round(peer, calls)
        if (n >= warmUp) samples[index]!.push(perCall)
      }
    }
    const base = samples[0]!
    return peers.map(({ name }, index) => ({
      name,
      perCall: samples[index]!,
      added: samples[index]!.map((sample, n) => sample - base[n]!),
      toBase: ratios(samples[index]!, base)
    }))
  } finally {
    issuer.stop()
  }
}
