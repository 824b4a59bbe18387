#include <boost/test/unit_test.hpp>

#include "proptests/relacy/search.h"
#include "proptests/relacy/table_programs.h"

namespace weir::relacy {
namespace {

BOOST_AUTO_TEST_SUITE(table_search)

template <template <class> class Program>
void finds_nothing() {
  const Found found = search_program<Program>();
  BOOST_TEST_MESSAGE(found.executions << " executions");
  BOOST_TEST(!found.fault, "found in execution " << found.executions << "\n" << found.history);
}

BOOST_AUTO_TEST_CASE(two_threads_begin_one_bucket_for_a_key) {
  finds_nothing<TwoBegin>();
}

BOOST_AUTO_TEST_CASE(a_hit_and_an_eviction_charge_nobody_for_another) {
  finds_nothing<HitMeetsEviction>();
}

BOOST_AUTO_TEST_CASE(a_hit_never_raises_the_tat_of_a_new_tenant) {
  finds_nothing<HitMeetsNewTenant>();
}

BOOST_AUTO_TEST_CASE(whoever_was_evicted_comes_back_no_earlier_than_she_was_full) {
  finds_nothing<EvictedComesBack>();
}

BOOST_AUTO_TEST_CASE(a_refunded_bucket_is_not_evicted_under_a_reader_of_its_higher_tat) {
  finds_nothing<RefundMeetsEviction>();
}

BOOST_AUTO_TEST_CASE(a_refund_fills_a_bucket_and_no_more) {
  finds_nothing<RefundPastFull>();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::relacy
