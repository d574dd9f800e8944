/** The storages of browsers. The types of the DOM are not available here, so the parts that are used are declared. */
import * as Effect from "effect/Effect"
import type { TokenStoreError } from "./TokenStoreError.ts"
import { unavailable } from "./values.ts"

/** Values by key. */
export interface Storage {
  readonly get: (key: string) => Effect.Effect<unknown, TokenStoreError>
  readonly set: (key: string, value: string) => Effect.Effect<void, TokenStoreError>
  readonly remove: (key: string) => Effect.Effect<void, TokenStoreError>
}

interface IdbRequest<A = unknown> {
  readonly result: A
  readonly error: unknown
  onsuccess: (() => void) | null
  onerror: (() => void) | null
}

interface ObjectStore {
  readonly get: (key: string) => IdbRequest
  readonly put: (value: string, key: string) => IdbRequest
  readonly delete: (key: string) => IdbRequest
}

interface Transaction {
  readonly error: unknown
  oncomplete: (() => void) | null
  onabort: (() => void) | null
  readonly objectStore: (name: string) => ObjectStore
}

interface Database {
  readonly createObjectStore: (name: string) => unknown
  readonly transaction: (
    name: string,
    mode: "readonly" | "readwrite",
    options: { readonly durability: "strict" }
  ) => Transaction
  readonly close: () => void
}

interface OpenRequest extends IdbRequest<Database> {
  onupgradeneeded: (() => void) | null
}

interface Global {
  readonly indexedDB?: { readonly open: (name: string, version: number) => OpenRequest }
  readonly localStorage?: {
    readonly getItem: (key: string) => string | null
    readonly setItem: (key: string, value: string) => void
    readonly removeItem: (key: string) => void
  }
}

/** The name of an error of the DOM says enough, and its message could quote a value. */
const failed = (what: string, cause: unknown): TokenStoreError =>
  unavailable(`cannot ${what} the tokens in the browser: ${cause instanceof Error ? cause.name : "unknown error"}`)

const objects = "tokens"

/** The database is opened for each use: an open one would keep the browser from deleting it. */
const withDatabase = async <A>(name: string, use: (database: Database) => Promise<A>): Promise<A> => {
  const { indexedDB } = globalThis as Global
  if (indexedDB === undefined) throw new TypeError("indexedDB is missing")
  const database = await new Promise<Database>((resolve, reject) => {
    const request = indexedDB.open(name, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(objects)
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
  try {
    return await use(database)
  } finally {
    database.close()
  }
}

const transact = (
  name: string,
  mode: "readonly" | "readwrite",
  run: (store: ObjectStore) => IdbRequest
): Promise<unknown> =>
  withDatabase(name, (database) =>
    new Promise((resolve, reject) => {
      // "strict": when it is complete, the value is on the disk.
      const transaction = database.transaction(objects, mode, { durability: "strict" })
      const request = run(transaction.objectStore(objects))
      transaction.oncomplete = () => resolve(request.result)
      transaction.onabort = () => reject(transaction.error)
    }))

const attempt = <A>(what: string, run: () => Promise<A>): Effect.Effect<A, TokenStoreError> =>
  Effect.tryPromise({ try: run, catch: (cause) => failed(what, cause) })

/** IndexedDB. A key is written as JSON, so that a lone surrogate stays what it is. */
export const makeIndexedDb = (name: string): Effect.Effect<Storage, TokenStoreError> =>
  Effect.as(attempt("open", () => withDatabase(name, async () => {})), {
    get: (key) => attempt("read", () => transact(name, "readonly", (store) => store.get(JSON.stringify(key)))),
    set: (key, value) =>
      Effect.asVoid(
        attempt("write", () => transact(name, "readwrite", (store) => store.put(value, JSON.stringify(key))))
      ),
    remove: (key) =>
      Effect.asVoid(attempt("remove", () => transact(name, "readwrite", (store) => store.delete(JSON.stringify(key)))))
  })

/** `localStorage`. */
export const makeLocalStorage = (name: string): Effect.Effect<Storage, TokenStoreError> =>
  Effect.suspend(() => {
    const at = (key: string) => `${name} ${JSON.stringify(key)}`
    const use = <A>(what: string, run: (storage: NonNullable<Global["localStorage"]>) => A) =>
      Effect.try({
        try: () => {
          const { localStorage } = globalThis as Global
          if (localStorage === undefined) throw new TypeError("localStorage is missing")
          return run(localStorage)
        },
        catch: (cause) => failed(what, cause)
      })
    return Effect.as(use("open", () => {}), {
      get: (key) => use("read", (storage) => storage.getItem(at(key)) ?? undefined),
      set: (key, value) => use("write", (storage) => storage.setItem(at(key), value)),
      remove: (key) => use("remove", (storage) => storage.removeItem(at(key)))
    })
  })
