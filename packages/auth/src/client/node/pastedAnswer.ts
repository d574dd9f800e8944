/**
 * Reads a pasted text: the address that the browser of the person was redirected to, its query, or a code and a state. An
 * invalid text is explained, since the person tries again. An explanation never repeats a code.
 */
import { printable } from "@skein/protocol/Text"

/** The sign-in that the answer must belong to. */
export interface Wanted {
  /** The sign-in page. */
  readonly url: URL
  readonly redirectUri: string
  readonly state: string
}

/** The longest text that is read, in characters. */
const maxPasteLength = 16_384

const whole = "Paste the whole address that the browser went to after the sign-in."

/** A URI without its query and its fragment, as browsers write it. */
const placeOf = (uri: string): string => {
  const place = uri.replace(/[?#][^]*$/, "")
  return URL.canParse(place) ? new URL(place).href : place
}

/** The parameters in a text, or what is wrong with the text. */
const read = (text: string, { redirectUri, url }: Wanted): URLSearchParams | string => {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    const pasted = URL.parse(text)
    if (pasted === null) return `This is not a valid address. ${whole}`
    const place = placeOf(text)
    if (place === placeOf(redirectUri)) return pasted.searchParams
    return place === placeOf(url.href)
      ? `This is the address of the sign-in page. Sign in there first. ${whole}`
      : `The address must begin with ${redirectUri} and this one begins with ${printable(place, 200)}. ${whole}`
  }
  if (text.includes("=")) return new URLSearchParams(text.replace(/^[?#]/, ""))
  const [code = "", state, ...more] = text.split(/[\s#]+/)
  if (state === undefined) return `A code without its state is not enough. ${whole}`
  return more.length > 0 ? `This is not an address. ${whole}` : new URLSearchParams({ code, state })
}

/** Returns the parameters of the answer, or a sentence for the person: why the text is not the answer. */
export const parse = (text: string, wanted: Wanted): URLSearchParams | string => {
  if (text.length > maxPasteLength) return `The text has more than ${maxPasteLength} characters. ${whole}`
  // Mails and chats add brackets and quotes, and terminals may mark the beginning and the end of a paste.
  // oxlint-disable-next-line no-control-regex
  const bare = text.replaceAll(/\u001b\[20[01]~/g, "").trim().replaceAll(/^[<"'`]+|[>"'`]+$/g, "").trim()
  if (bare === "") return whole
  const params = read(bare, wanted)
  if (typeof params === "string") return params
  const [state, ...others] = params.getAll("state")
  if (state === undefined || others.length > 0) return `The text has no state. ${whole}`
  if (state !== wanted.state) {
    return "This address belongs to another sign-in, perhaps to an earlier one. Open the URL above and sign in again."
  }
  return params.has("code") || params.has("error") ? params : `The text has no code. ${whole}`
}
