import type { Body } from "../adapter.ts"

/** How a decoder reads UTF-8 and nothing else. A byte order mark stays, and is no JSON. */
export const strict = { fatal: true, ignoreBOM: true }

const decoder = /* @__PURE__ */ new TextDecoder("utf-8", strict)

/** A body that is there as a whole. */
export const decode = (bytes: ArrayBuffer | Uint8Array): Body => {
  try {
    return { text: decoder.decode(bytes) }
  } catch {
    return { fault: "Encoding" }
  }
}
