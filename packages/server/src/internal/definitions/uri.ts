/**
 * What a URI is, by RFC 3986: "Custom URI schemes MUST be in accordance with RFC3986" (2025-06-18, resources). Clients that check
 * refuse a whole listing for one that is not.
 */

// A scheme and a colon, then an authority (a user, a name or an IPv6 literal, a port), a path with a query, and a fragment, of the
// characters that each may hold.
const plain = "[\\w\\-.~!$&'()*+,;=]|%[\\da-f]{2}"
const authority = `//(?:(?:${plain}|:)*@)?(?:\\[[\\da-f:.]+\\]|(?:${plain})*)(?::\\d*)?(?=[/?#]|$)`
const character = `${plain}|[:/?@]`
const rfc3986 = /* @__PURE__ */ new RegExp(
  `^[a-z][a-z\\d+.-]*:(?:${authority}|(?!//))(?:${character})*(?:#(?:${character})*)?$`,
  "i"
)

/** Whether a text is a URI. */
export const isUri = (text: string): boolean => rfc3986.test(text)

/** The same for what a client loads by itself: an image may stand in it whole, which need not be looked through by the letter. */
export const isImageUri = (text: string): boolean =>
  /^data:[\x21-\x7e]*$/i.test(text) || (/^https?:/i.test(text) && isUri(text))
