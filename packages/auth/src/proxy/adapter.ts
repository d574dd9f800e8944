/**
 * The storage of `oidc-provider` on a `ProxyStore`. One engine has one `Records`, and one adapter for each kind of its
 * records (`Client`, `RefreshToken`, `Grant`, …).
 */
import type { Adapter, AdapterPayload } from "oidc-provider"
import type { Library } from "./library.ts"
import type { SetOptions } from "./store.ts"

/** Values by key, for the callbacks of the engine. */
export interface Records {
  readonly get: (
    key: string
  ) => Promise<{ readonly value: unknown; readonly usedAt: number | undefined } | undefined>
  readonly set: (key: string, value: unknown, options?: SetOptions) => Promise<void>
  readonly use: (key: string) => Promise<boolean>
  readonly remove: (key: string) => Promise<void>
  readonly removeGroup: (group: string) => Promise<void>
}

/** The part of the engine that the adapter needs. */
export interface AdapterOptions {
  readonly library: Library
  readonly records: Records
  /**
   * How long a refresh token that has been used can be used again, in milliseconds: two processes that refresh at once,
   * or a client that did not receive the answer. After it, the use of an old refresh token ends the grant.
   */
  readonly rotationGraceMillis: number
  /** How long a registration that expires is kept, in milliseconds. Registrations do not expire without it. */
  readonly registrationMillis?: number | undefined
}

/** Makes the adapters of one engine. */
export const makeAdapter = ({ library, records, registrationMillis, rotationGraceMillis }: AdapterOptions) => {
  const kept = (name: string, expiresIn: number | undefined): number | undefined => {
    if (expiresIn !== undefined) return Date.now() + expiresIn * 1000
    // The token of a registration has no end of its own in the engine, and would outlive it.
    const isRegistration = name === "Client" || name === "RegistrationAccessToken"
    return isRegistration && registrationMillis !== undefined ? Date.now() + registrationMillis : undefined
  }
  return (name: string): Adapter => {
    const find = async (id: string): Promise<AdapterPayload | undefined> => {
      const entry = await records.get(`${name} ${id}`)
      if (entry === undefined) return undefined
      const payload = entry.value as AdapterPayload
      if (entry.usedAt === undefined) return payload
      // Within the grace, a used refresh token looks unused to the engine.
      if (name === "RefreshToken" && Date.now() < entry.usedAt + rotationGraceMillis) return payload
      return { ...payload, consumed: Math.floor(entry.usedAt / 1000) }
    }
    return {
      find,
      upsert: async (id, payload, expiresIn) => {
        const expiresAt = kept(name, expiresIn)
        await records.set(`${name} ${id}`, payload, { expiresAt, group: payload.grantId })
        if (payload.uid !== undefined && name === "Session") {
          await records.set(`Session of ${payload.uid}`, id, { expiresAt })
        }
      },
      findByUid: async (uid) => {
        const entry = await records.get(`Session of ${uid}`)
        return entry === undefined ? undefined : find(entry.value as string)
      },
      // Only the device flow has user codes, and it is disabled.
      findByUserCode: () => Promise.resolve(undefined),
      consume: async (id) => {
        // Two instances may have found the same code unused. The store decides which of them was first. A refresh token
        // stays usable in its grace.
        if (!await records.use(`${name} ${id}`) && name !== "RefreshToken") {
          throw new library.errors.InvalidGrant("already used")
        }
      },
      destroy: (id) => records.remove(`${name} ${id}`),
      revokeByGrantId: (grantId) => records.removeGroup(grantId)
    }
  }
}
