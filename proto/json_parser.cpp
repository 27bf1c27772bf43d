// SPDX-License-Identifier: MIT
#include <boost/json/basic_parser_impl.hpp>

#include "proto/json_value.hpp"
#include "proto/messages.hpp"
#include "proto/utf8.hpp"

namespace mechad {

namespace {

namespace json = boost::json;

// Builds the tree from the parser's events. Its limits on sizes are off: the text was measured
// before, and no value outgrows it.
class TreeBuilder {
public:
    static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);

    JsonValue take_root() { return std::move(root_); }

    bool on_document_begin(json::error_code&) { return true; }
    bool on_document_end(json::error_code&) { return true; }
    bool on_array_begin(json::error_code&) { return open(JsonArray{}); }
    bool on_array_end(std::size_t, json::error_code&) { return close(); }
    bool on_object_begin(json::error_code&) { return open(JsonObject{}); }
    bool on_object_end(std::size_t, json::error_code&) { return close(); }
    bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
        return extend(part);
    }
    bool on_string(json::string_view rest, std::size_t, json::error_code&) {
        extend(rest);
        return add(std::exchange(text_, {}));
    }
    bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
        return extend(part);
    }
    bool on_key(json::string_view rest, std::size_t, json::error_code&) {
        extend(rest);
        open_.back().key = std::exchange(text_, {});
        return true;
    }
    bool on_number_part(json::string_view, json::error_code&) { return true; }
    bool on_int64(std::int64_t number, json::string_view, json::error_code&) { return add(number); }
    bool on_uint64(std::uint64_t number, json::string_view, json::error_code&) {
        return add(number);
    }
    bool on_double(double number, json::string_view, json::error_code&) { return add(number); }
    bool on_bool(bool value, json::error_code&) { return add(value); }
    bool on_null(json::error_code&) { return add(nullptr); }
    bool on_comment_part(json::string_view, json::error_code&) { return true; }
    bool on_comment(json::string_view, json::error_code&) { return true; }

private:
    struct Container {
        JsonValue::Content content;
        std::string key;  // of the member being read
    };

    bool extend(json::string_view part) {
        text_.append(part.data(), part.size());
        return true;
    }

    bool open(JsonValue::Content content) {
        open_.push_back({std::move(content), {}});
        return true;
    }

    bool close() {
        JsonValue::Content content = std::move(open_.back().content);
        open_.pop_back();
        return add(std::move(content));
    }

    bool add(JsonValue::Content content) {
        JsonValue value(std::move(content));
        if (open_.empty()) {
            root_ = std::move(value);
        } else if (auto* const array = std::get_if<JsonArray>(&open_.back().content)) {
            array->push_back(std::move(value));
        } else {
            std::get<JsonObject>(open_.back().content)
                .push_back({std::move(open_.back().key), std::move(value)});
        }
        return true;
    }

    std::vector<Container> open_;
    std::string text_;
    JsonValue root_;
};

Error parse_error(std::string message) { return {ErrorKind::parse_error, std::move(message)}; }

std::string at_byte(std::size_t offset) { return " (at byte " + std::to_string(offset) + ")"; }

}  // namespace

Result<JsonValue> parse_json(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) {
        return parse_error("the line begins with a byte order mark");
    }
    if (const auto invalid = find_invalid_utf8(text)) {
        return parse_error("the line is not valid UTF-8" + at_byte(*invalid));
    }
    json::parse_options options;
    options.max_depth = json_depth_max;
    json::basic_parser<TreeBuilder> parser(options);
    json::error_code error;
    const std::size_t parsed = parser.write_some(false, text.data(), text.size(), error);
    if (error == json::error::too_deep) {
        return parse_error("the line nests deeper than " + std::to_string(json_depth_max) +
                           " levels");
    }
    if (error) return parse_error("the line is not valid JSON" + at_byte(parsed));
    if (parsed < text.size()) {
        return parse_error("something follows the JSON text" + at_byte(parsed));
    }
    return parser.handler().take_root();
}

}  // namespace mechad
