/* The search looks for words that begin like those of a question: "a" is on every page. What asks nothing is left out. */
const ASKS_NOTHING = new Set(
  "a an and are at be by can do does for from how i in is it may me mine my of on or our that the there this to was what when where which who why will with you your"
    .split(" ")
);
/* Verbs of two words whose page has a name of one: "back" alone finds "backup" before "rollback". */
const ONE_WORD = [
  [/\broll(?:s|ed|ing)?\s+back\b/gi, "rollback"],
  [/\bback(?:s|ed|ing)?\s+up\b/gi, "backup"],
];
const QUERY = 2; // the type of the message by which the page asks its search worker
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  if (message && message.type === QUERY && typeof message.data === "string") {
    const query = ONE_WORD.reduce((text, [verb, noun]) => text.replace(verb, noun), message.data);
    const words = query.split(/\s+/).filter((word) => !ASKS_NOTHING.has(word.toLowerCase()));
    if (words.join("")) message = { ...message, data: words.join(" ") };
  }
  return post.call(this, message, ...rest);
};
